// SPDX-License-Identifier: Apache-2.0
//
// The lines sent to region servers, and the meaning of their answers.

#include "cluster/server_lines.h"

#include <sstream>

namespace pv2 {

std::string open_line(const RegionCall& call) {
  return "OPEN " + to_string(call.server) + ' ' + call.effect_key + ' ' + call.region.id + ' ' +
         std::to_string(call.last_sequence);
}

std::string close_line(const RegionCall& call) {
  return "CLOSE " + to_string(call.server) + ' ' + call.effect_key + ' ' + call.region.id;
}

CallOutcome classify(const LineAnswer& answer) {
  switch (answer.kind) {
    case LineAnswer::Kind::kNotSent:
      return {CallOutcome::Kind::kNotSent, 0, answer.text};
    case LineAnswer::Kind::kLost:
    case LineAnswer::Kind::kSilent:
      return {CallOutcome::Kind::kUnknown, 0, answer.text};
    case LineAnswer::Kind::kAnswered:
      break;
  }
  std::istringstream words(answer.text);
  std::string verdict;
  words >> verdict;
  if (verdict == "DONE") {
    CallOutcome done{CallOutcome::Kind::kDone, 0, ""};
    words >> done.open_sequence;
    return done;
  }
  if (verdict == "REFUSED") return {CallOutcome::Kind::kRefused, 0, answer.text};
  // The port belongs to another server now; the intended one never saw the request.
  if (verdict == "STRANGER") return {CallOutcome::Kind::kNotSent, 0, answer.text};
  return {CallOutcome::Kind::kUnknown, 0, "the answer makes no sense: " + answer.text};
}

bool has_stopped(const LineAnswer& answer) {
  // Nobody listens on the port, or another server does, or the connection ended with the process. A
  // missing answer proves nothing.
  return answer.kind != LineAnswer::Kind::kSilent;
}

}  // namespace pv2
