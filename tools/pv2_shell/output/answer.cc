// SPDX-License-Identifier: Apache-2.0
//
// Words for answers. They are part of what scripts see, so they change no more than the formats
// do.

#include "output/answer.h"

#include <fmt/format.h>

namespace pv2::shell {

std::string_view to_string(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::kDone:
      return "done";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kUnknown:
      return "unknown";
    case Outcome::kRunning:
      return "running";
  }
  return "unknown";
}

std::string counted(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string to_string(const Nonce& nonce, std::optional<WallTime> expires_at,
                      std::string_view mark) {
  std::string text = fmt::format("{:x}-{:x}", nonce.group, nonce.value);
  if (expires_at) text += fmt::format("-{:x}", expires_at->time_since_epoch().count());
  if (!mark.empty()) text += fmt::format("-{}", mark);
  return text;
}

}  // namespace pv2::shell
