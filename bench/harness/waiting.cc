// SPDX-License-Identifier: Apache-2.0
//
// The event never comes: its Completion is neither called nor destroyed. A step whose Completion is
// destroyed would fail.

#include "harness/waiting.h"

#include <utility>

namespace pv2::bench {
namespace {

// Takes no memory: the value that the procedure awaits outlives it by the one reference.
void never_complete(Completion<bool> event) {
  union Kept {
    explicit Kept(Completion<bool> kept) : completion(std::move(kept)) {}
    ~Kept() {}
    Completion<bool> completion;
  };
  const Kept kept(std::move(event));
}

}  // namespace

WaitsForEvent::Flow WaitsForEvent::execute_from_state(WaitStage /*stage*/, StepContext& ctx) {
  if (ctx.await<bool>(never_complete) != nullptr) return done();
  arrivals_->count.fetch_add(1, std::memory_order_relaxed);
  return wait();
}

LockSet WaitsForTimer::locks() const {
  switch (static_cast<Locks>(locks_)) {
    case Locks::kNone:
      return {};
    case Locks::kTable:
      return own_table(table_);
    case Locks::kRegion:
      return LockSet().region("bench", std::to_string(table_), "0", LockMode::kExclusive);
  }
  return {};
}

WaitsForTimer::Flow WaitsForTimer::execute_from_state(WaitStage /*stage*/, StepContext& ctx) {
  if (ctx.timed_out()) return done();
  arrivals_->count.fetch_add(1, std::memory_order_relaxed);
  return wait_for(std::chrono::hours(1) + std::chrono::milliseconds(table_ * 7919 % 3'600'000));
}

HasChild::Flow HasChild::execute_from_state(WaitStage /*stage*/, StepContext& ctx) {
  ctx.spawn(WaitsForTimer(*arrivals_, table_, WaitsForTimer::Locks::kRegion));
  arrivals_->count.fetch_add(1, std::memory_order_relaxed);
  return done();
}

}  // namespace pv2::bench
