// SPDX-License-Identifier: Apache-2.0
//
// An outcome in words, for messages and logs: the kind first, then what goes with it. An unknown
// one names its nonce, because that is what its caller needs to ask again.

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
