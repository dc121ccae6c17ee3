// SPDX-License-Identifier: Apache-2.0
//
// The story knows what a run must be told: to go on exactly if the event was set when its turn
// first asked, or at any time since.

#include "simulation/story_events.h"

#include <set>
#include <utility>

#include "simulation/turn.h"

namespace pv2::testing {

void StoryEvents::begin_life() {
  waiters_.clear();
  for (std::size_t which = 0; which < kCount; ++which) {
    events_[which] = Event("condition " + std::to_string(which));
    if (holds_[which]) events_[which].set();
  }
}

void StoryEvents::set(std::size_t which) {
  holds_[which] = true;
  for (auto& [key, waiter] : waiters_) waiter.may_go_on |= waiter.which == which;
  events_[which].set();
}

void StoryEvents::reset(std::size_t which) {
  holds_[which] = false;
  events_[which].reset();
}

bool StoryEvents::await(StepContext& ctx, std::size_t which) {
  const std::pair key(ctx.id().value, ctx.effect_key());
  const auto [waiter, first] = waiters_.try_emplace(key, Waiter{which, holds_[which], true});
  const bool goes_on = ctx.await(events_[which]);
  if (!std::exchange(waiter->second.is_known, true)) waiter->second.may_go_on = goes_on;
  if (goes_on != waiter->second.may_go_on) {
    findings_.add(place(ctx) + (goes_on ? ": it goes on though its event was not set"
                                        : ": it was waiting when its event was set, and waits on"));
  }
  if (goes_on) waiters_.erase(waiter);
  return goes_on;
}

void StoryEvents::forget(std::uint64_t id) {
  std::erase_if(waiters_, [id](const auto& waiter) { return waiter.first.first == id; });
}

void StoryEvents::may_ask_anew(std::uint64_t id) {
  for (auto& [key, waiter] : waiters_) {
    if (key.first == id) waiter.is_known = false;
  }
}

std::size_t StoryEvents::due() const {
  std::set<std::size_t> awaited;
  for (const auto& [key, waiter] : waiters_) {
    if (!waiter.may_go_on) awaited.insert(waiter.which);
  }
  return awaited.size();
}

void StoryEvents::pulse_due(std::size_t which) {
  std::set<std::size_t> awaited;
  for (const auto& [key, waiter] : waiters_) {
    if (!waiter.may_go_on) awaited.insert(waiter.which);
  }
  if (which >= awaited.size()) return;
  const std::size_t event = *std::next(awaited.begin(), static_cast<std::ptrdiff_t>(which));
  const bool held = holds_[event];
  set(event);
  if (!held) reset(event);
}

}  // namespace pv2::testing
