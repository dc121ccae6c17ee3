// SPDX-License-Identifier: Apache-2.0
//
// Puts what a client knows into words, for logs and messages.

#include "pv2/rpc/call_outcome.h"

#include <fmt/format.h>

namespace pv2 {

std::string to_string(const CallOutcome& outcome) {
  switch (outcome.kind) {
    case CallOutcome::Kind::kOk:
      return "OK";
    case CallOutcome::Kind::kFailed:
      return fmt::format("FAILED: {}", outcome.status.to_string());
    case CallOutcome::Kind::kUnknown:
      if (!outcome.nonce) return fmt::format("UNKNOWN: {}", outcome.status.to_string());
      return fmt::format("UNKNOWN (nonce {}:{}): {}", outcome.nonce.group, outcome.nonce.value,
                         outcome.status.to_string());
  }
  return "an outcome of no kind";
}

}  // namespace pv2
