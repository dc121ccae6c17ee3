// SPDX-License-Identifier: Apache-2.0
//
// One poll: takes entries from the real scheduler until the hand is full, then hands out some of
// them.

#include "choosing_scheduler.h"

#include <algorithm>
#include <array>

namespace pv2::testing {

std::size_t ChoosingScheduler::poll(std::span<SchedulerEntry*> run,
                                    std::chrono::milliseconds /*patience*/,
                                    SchedulerCaller /*caller*/) {
  const std::size_t wanted = std::min(run.size(), allowed_);
  if (wanted == 0) return 0;
  std::array<SchedulerEntry*, 16> polled{};
  const std::size_t room = std::min(polled.size(), std::max(in_hand_max_, wanted));
  if (in_hand_.size() < room) {
    const std::size_t more = 1 + choices_.below(room - in_hand_.size());
    const std::size_t got =
        inner_->poll(std::span(polled).first(more), std::chrono::milliseconds(0));
    in_hand_.insert(in_hand_.end(), polled.begin(), polled.begin() + got);
  }
  std::size_t count = 0;
  while (count < wanted && !in_hand_.empty()) {
    // An empty poll would look like idleness, so at least one entry always leaves.
    if (count > 0 && choices_.below(2) == 0) break;
    const std::size_t which = choices_.below(in_hand_.size());
    run[count++] = in_hand_[which];
    in_hand_.erase(in_hand_.begin() + static_cast<std::ptrdiff_t>(which));
  }
  allowed_ -= count;
  return count;
}

}  // namespace pv2::testing
