// SPDX-License-Identifier: Apache-2.0
//
// Two units at most: nobody reads the third.

#include "output/duration.h"

#include <fmt/format.h>

#include <algorithm>

namespace pv2::shell {

std::string in_words(Duration duration) {
  const std::int64_t ms = std::max<std::int64_t>(
      0, std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
  const std::int64_t seconds = ms / 1000;
  if (seconds == 0) return fmt::format("{} ms", ms);
  if (seconds < 60) return fmt::format("{}.{} s", seconds, ms % 1000 / 100);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  if (seconds < 86'400) return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
  return fmt::format("{} d {} h", seconds / 86'400, seconds % 86'400 / 3600);
}

}  // namespace pv2::shell
