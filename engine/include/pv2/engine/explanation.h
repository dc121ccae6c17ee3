// SPDX-License-Identifier: Apache-2.0
//
// Explanation: the answer to "why is it not moving?", as data and in words. It begins with the
// procedure that was asked about and follows the waits, from procedure to procedure, to the root
// causes: the procedures that wait for no other one. It describes one moment; asking changes
// nothing and holds nothing.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/procedure_state.h>
#include <pv2/base/resource.h>
#include <pv2/base/status.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pv2 {

/// One thing that a procedure waits for. The kind decides which members mean something.
struct WaitReason {
  enum class Kind : std::uint8_t {
    kSubmitting,  ///< Its first record is on its way to the store.
    kQueued,      ///< It can run, and waits for a worker: `ahead` others stand before it.
    kLock,        ///< The procedures in `on` hold `key` in a mode that excludes it.
    kLine,        ///< `on` stand before it in the line for `key`.
    kLimit,       ///< `on` have the places that `key` is limited to; empty: the limit is 0.
    kProducer,    ///< `on` has to do something first, as the scheduler was told.
    kChildren,    ///< `count` children have not finished; `on` are some of them.
    kTimer,       ///< It waits until `deadline`, which is `left` away.
    /// It waits before attempt `attempt` of a step or an undo; the last one failed with `error`.
    kBackOff,
    kValue,   ///< It awaits `count` values of completions; until `deadline`, if any.
    kEvent,   ///< It awaits the event `name`, and `count` others; until `deadline`, if any.
    kSignal,  ///< It waits for a signal `name`, and for `count` others; until `deadline`, if any.
    /// `count` pieces of its offloaded work have not ended, the oldest for `age` now. It awaits
    /// them, or they keep it, and what it holds, from ending or being undone.
    kOffload,
    kRunning,     ///< A worker runs its step, for `age` now.
    kTaken,       ///< A worker has taken it and runs a step of `on` before it.
    kRun,         ///< Its step has ended; its record waits for the step of `on`, from the same run.
    kCommitting,  ///< Its record is on its way to the store.
    /// Its tree failed, or an operator ends it; first the members `on` have to end their step or
    /// the work that they have offloaded.
    kTreeInFlight,
    kTurn,  ///< Its tree is undone in the reverse order of its steps; it is the turn of `on`.
    /// Neither finished nor undone: waits for an operator. `error` says why; if its tree is parked
    /// in the undo of another member, `on` is that member.
    kParked,
    kQuarantined,  ///< This program cannot read its tree. `error` says why.
    kStopped,      ///< The executor loads its store, has stopped, or was never started: `error`.
    kFinished,     ///< It has ended and waits for nothing. `error` if it was undone.
  };

  Kind kind = Kind::kQueued;
  std::vector<ProcedureId> on;  ///< The procedures that it waits for; each has its own reasons.
  /// At least this many more, which are not named: `on` has room for few, and in a large tree only
  /// a part of the members is looked at.
  std::size_t more = 0;
  ResourceKey key;
  std::string name;
  std::size_t ahead = 0;
  std::size_t count = 0;
  std::uint32_t attempt = 0;
  Duration age{};  ///< How long this has lasted; 0 when that is not known.
  std::optional<WallTime> deadline;
  Duration left{};  ///< Until the deadline.
  Status error;
  /// For offloaded work that reports progress: how long ago it last did so.
  std::optional<Duration> heartbeat{};
};

/// Why a procedure does not go on, and why the procedures that it waits for do not.
struct Explanation {
  struct Procedure {
    ProcedureId id;
    std::string type;
    ProcedureState state = ProcedureState::kRunnable;
    std::uint32_t step = 0;
    std::string step_name;
    bool undo = false;                ///< The step is being undone, or is to be undone next.
    std::vector<WaitReason> reasons;  ///< At least one.
  };

  /// The procedure that was asked about, then those that it waits for, and so on; each once.
  std::vector<Procedure> procedures;
  /// The listed procedures that wait for no other one: where to look first. Empty if all wait in
  /// cycles, or for procedures that are not named (`more`) or left out.
  std::vector<ProcedureId> root_causes;
  /// In each cycle, each member waits for the next, and the last for the first.
  std::vector<std::vector<ProcedureId>> cycles;
  /// The answer is bounded: this many procedures that others wait for have no entry.
  std::size_t left_out = 0;

  [[nodiscard]] const Procedure* find(ProcedureId id) const noexcept;
};

[[nodiscard]] std::string_view to_string(WaitReason::Kind kind) noexcept;
/// One reason, in words: "waits for table shop:orders, held by procedure 3".
[[nodiscard]] std::string to_string(const WaitReason& reason);
/// The whole explanation: one line per procedure and reason, with the procedures that it waits for
/// indented below it.
[[nodiscard]] std::string to_string(const Explanation& explanation);

}  // namespace pv2
