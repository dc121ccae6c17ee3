// SPDX-License-Identifier: Apache-2.0
//
// Procedures that wait for ever, as most of those in an engine do most of the time. Each has 100
// bytes of state. One waits for an event that never comes (after a restart it is runnable and waits
// again), one for a timer that is far away, one for a child that waits for such a timer.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "harness/five_steps.h"

namespace pv2::bench {

/// Counts the steps that have come to their wait. Thread-safe.
struct Arrivals {
  std::atomic<std::uint64_t> count{0};  // relaxed: a count; nothing is published through it
};

enum class WaitStage { kWait = 1 };

/// Waits for an event. Threads: as Procedure.
class WaitsForEvent final : public StateMachineProcedure<WaitStage> {
 public:
  static constexpr std::string_view kType = "bench.WaitsForEvent";
  static constexpr auto kSteps = steps(step(WaitStage::kWait, "WAIT", kUndoable));

  explicit WaitsForEvent(Arrivals& arrivals) : arrivals_(&arrivals) {}
  WaitsForEvent(Arrivals& arrivals, std::uint64_t table, bool locks)
      : arrivals_(&arrivals), table_(table), locks_(locks), state_(state_bytes(table)) {}

  void fields(auto& f) {
    f.arg(1, "table", table_);
    f.arg(2, "locks", locks_);
    f(3, "state", state_);
  }
  [[nodiscard]] LockSet locks() const override { return locks_ ? own_table(table_) : LockSet(); }
  Flow execute_from_state(WaitStage stage, StepContext& ctx) override;

 private:
  Arrivals* arrivals_;
  std::uint64_t table_ = 0;
  bool locks_ = false;
  std::string state_;
};

/// Waits for a timer between one and two hours away; the number of its table decides. As the child
/// of a HasChild it locks a region of the parent's table. Threads: as Procedure.
class WaitsForTimer final : public StateMachineProcedure<WaitStage> {
 public:
  static constexpr std::string_view kType = "bench.WaitsForTimer";
  static constexpr auto kSteps = steps(step(WaitStage::kWait, "WAIT", kUndoable));
  enum class Locks : std::uint8_t { kNone, kTable, kRegion };

  explicit WaitsForTimer(Arrivals& arrivals) : arrivals_(&arrivals) {}
  WaitsForTimer(Arrivals& arrivals, std::uint64_t table, Locks locks)
      : arrivals_(&arrivals),
        table_(table),
        locks_(static_cast<std::uint32_t>(locks)),
        state_(state_bytes(table)) {}

  void fields(auto& f) {
    f.arg(1, "table", table_);
    f.arg(2, "locks", locks_);
    f(3, "state", state_);
  }
  [[nodiscard]] LockSet locks() const override;
  Flow execute_from_state(WaitStage stage, StepContext& ctx) override;

 private:
  Arrivals* arrivals_;
  std::uint64_t table_ = 0;
  std::uint32_t locks_ = 0;
  std::string state_;
};

/// Holds its table and waits for its one child. Threads: as Procedure.
class HasChild final : public StateMachineProcedure<WaitStage> {
 public:
  static constexpr std::string_view kType = "bench.HasChild";
  static constexpr auto kSteps = steps(step(WaitStage::kWait, "SPAWN", kUndoable));

  explicit HasChild(Arrivals& arrivals) : arrivals_(&arrivals) {}
  HasChild(Arrivals& arrivals, std::uint64_t table)
      : arrivals_(&arrivals), table_(table), state_(state_bytes(table)) {}

  void fields(auto& f) {
    f.arg(1, "table", table_);
    f(2, "state", state_);
  }
  [[nodiscard]] LockSet locks() const override { return own_table(table_); }
  Flow execute_from_state(WaitStage stage, StepContext& ctx) override;

 private:
  Arrivals* arrivals_;
  std::uint64_t table_ = 0;
  std::string state_;
};

}  // namespace pv2::bench
