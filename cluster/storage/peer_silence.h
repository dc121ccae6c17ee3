// SPDX-License-Identifier: Apache-2.0
//
// When the directory of a peer counts as silent, and what people are told then. Its file system may
// hang: a read there does not come back.

#pragma once

#include <fmt/format.h>
#include <pv2/base/time.h>

#include <chrono>
#include <string>
#include <string_view>

namespace pv2::cluster {

/// A file system that answers at all reads a small file in less, also one that is far away and
/// busy.
inline constexpr Duration kPeerAnswerMax = std::chrono::seconds(10);

/// `instead`: what people may do if they do not mend the file system.
[[nodiscard]] inline std::string silence_of_peer(std::string_view root, std::string_view instead) {
  return fmt::format(
      "the directory {} of the peer does not answer (10 s or longer); mend the file system that it "
      "is on, or {}",
      root, instead);
}

}  // namespace pv2::cluster
