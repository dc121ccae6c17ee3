// SPDX-License-Identifier: Apache-2.0
//
// RegionPauses: which regions are left alone for a while because some work on them has failed. The
// pause of a region doubles with each failure, and ends for good with a success.

#pragma once

#include <pv2/base/time.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

namespace pv2::cluster {

/// Used on the loop only.
class RegionPauses {
 public:
  [[nodiscard]] bool is_paused(const std::string& region_id, SteadyTime now) const {
    const auto found = pauses_.find(region_id);
    return found != pauses_.end() && now < found->second.end;
  }
  void failed(const std::string& region_id, SteadyTime now) {
    Pause& pause = pauses_[region_id];
    pause.length = std::clamp(2 * pause.length, kPauseMin, kPauseMax);
    pause.end = now + pause.length;
  }
  void succeeded(const std::string& region_id) { pauses_.erase(region_id); }

 private:
  // A disk that was full for a moment is not for long; one that stays full is looked at once a
  // minute.
  static constexpr Duration kPauseMin = std::chrono::seconds(1);
  static constexpr Duration kPauseMax = std::chrono::minutes(1);

  struct Pause {
    Duration length{};
    SteadyTime end{};
  };
  std::map<std::string, Pause> pauses_;
};

}  // namespace pv2::cluster
