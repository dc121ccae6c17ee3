// SPDX-License-Identifier: Apache-2.0
//
// The lines sent to region servers, and the meaning of their answers.

#include "cluster/server_lines.h"

#include <sstream>

namespace pv2 {

std::string line_of(const RemoteOperation& operation) {
  const bool opens = operation.kind == RemoteKind::kOpenRegion;
  std::string line = (opens ? "OPEN " : "CLOSE ") + to_string(operation.server) + ' ' +
                     operation.effect_key + ' ' + operation.region.id;
  if (opens) line += ' ' + std::to_string(operation.sequence);
  return line;
}

LineOutcome classify(const LineAnswer& answer) {
  using Kind = DispatchOutcome::Kind;
  switch (answer.kind) {
    case LineAnswer::Kind::kNotSent:
      return {{Kind::kNotSent, answer.text}};
    case LineAnswer::Kind::kLost:
    case LineAnswer::Kind::kSilent:
      return {{Kind::kUnknown, answer.text}};
    case LineAnswer::Kind::kAnswered:
      break;
  }
  std::istringstream words(answer.text);
  std::string verdict;
  words >> verdict;
  if (verdict == "DONE") {
    LineOutcome done{{Kind::kDone, ""}};
    words >> done.sequence;
    return done;
  }
  if (verdict == "REFUSED") return {{Kind::kRefused, answer.text}};
  // The port belongs to another server now; the intended one never saw the request.
  if (verdict == "STRANGER") return {{Kind::kNotSent, answer.text}};
  return {{Kind::kUnknown, "the answer makes no sense: " + answer.text}};
}

bool has_stopped(const LineAnswer& answer) {
  // Nobody listens on the port, or another server does, or the connection ended with the process. A
  // missing answer proves nothing.
  return answer.kind != LineAnswer::Kind::kSilent;
}

}  // namespace pv2
