// SPDX-License-Identifier: Apache-2.0
//
// The alarm is set when a timer becomes the earliest, and left alone when the earliest is
// cancelled: then it goes off, finds nothing due, and is set for the next one.

#include "loop_timers.h"

#include <pv2/base/assert.h>

#include <algorithm>
#include <utility>

namespace pv2 {
namespace {

// The alarm counts nanoseconds, which overflow for a time that is far away.
constexpr Duration kAlarmMax = std::chrono::hours(24);

}  // namespace

TimerId LoopTimers::call_at(SteadyTime when, std::function<void()> task) {
  PV2_ASSERT(task != nullptr, "a timer needs a task");
  const std::uint64_t number = next_number_++;
  tasks_.emplace(Key{when, number}, std::move(task));
  due_.emplace(number, when);
  arm();
  return TimerId{number};
}

void LoopTimers::cancel(TimerId timer) {
  const auto at = due_.find(timer.value);
  if (at == due_.end()) return;
  const auto task = tasks_.extract(Key{at->second, timer.value});  // destroyed when both maps agree
  due_.erase(at);
}

void LoopTimers::clear() {
  while (!tasks_.empty()) cancel(TimerId{tasks_.begin()->first.number});
}

void LoopTimers::arm() {
  if (tasks_.empty()) return;
  const SteadyTime earliest = tasks_.begin()->first.when;
  if (armed_for_ && *armed_for_ <= earliest) return;
  armed_for_ = earliest;
  const SteadyTime now = clock_.steady_now();
  alarm_.expires_after(earliest <= now ? Duration::zero() : std::min(earliest - now, kAlarmMax));
  alarm_.async_wait([this](const error_code& error) {
    if (!error) fire();
  });
}

void LoopTimers::fire() {
  const SteadyTime now = clock_.steady_now();
  // A timer that is made in here waits for the next round, even if it is due: between two rounds
  // the loop serves its streams.
  const std::uint64_t next_round = next_number_;
  armed_for_.reset();
  while (!tasks_.empty()) {
    const auto first = tasks_.begin();
    if (first->first.when > now || first->first.number >= next_round) break;
    const auto task = tasks_.extract(first);
    due_.erase(task.key().number);
    task.mapped()();
  }
  arm();
}

}  // namespace pv2
