// SPDX-License-Identifier: Apache-2.0
//
// StorySignals: those who send signals to the procedures of a simulated run, and what must be true
// of what arrives. A sender that is not answered sends the same signal again in the next life; each
// copy is a signal of its own to the engine, and has a payload of its own here. What was accepted
// is given exactly once, in the order in which it was sent; what was refused never.

#pragma once

#include <pv2/engine/procedure_executor.h>
#include <pv2/engine/step_context.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pv2/testing/findings.h"
#include "simulation/turn.h"

namespace pv2::testing {

/// Owned by one thread.
class StorySignals {
 public:
  /// `most`: what the executor keeps for one procedure (max_signals).
  StorySignals(Findings& findings, std::size_t most) : findings_(findings), most_(most) {}

  /// Whoever was not answered in the life before sends again.
  void begin_life(ProcedureExecutor& executor);
  /// May be refused.
  void send(ProcedureId to);
  /// The same under a name that no step asks for.
  void send_noise(ProcedureId to);

  /// A run takes `count`; false: they are not all there, and somebody will be asked to send one.
  /// `newest` is the last visit that was ever seen of the procedure.
  bool take(StepContext& ctx, std::size_t count, std::uint64_t newest);
  /// The undoing of a step came to its end.
  void undo_ended(const StepContext& ctx) { ended_.insert({ctx.id().value, turn_of(ctx)}); }
  /// An operator said that a turn counts as done: what it was given is given to somebody else.
  void was_skipped(std::uint64_t id, Turn turn) { given_[id].erase(turn); }
  /// Whether somebody was told that it has ended.
  [[nodiscard]] bool has_ended(std::uint64_t id) const { return has_ended_.contains(id); }

  /// Signals that procedures wait for, and the sending of one of them.
  [[nodiscard]] std::size_t due() const noexcept { return wanted_.size(); }
  void send_due(std::size_t which);

 private:
  using Numbers = std::vector<std::size_t>;  // places in sent_ of one procedure
  struct Sent {
    enum class Answer : std::uint8_t { kNone, kUnknown, kAccepted, kRefused };
    Answer answer = Answer::kNone;
  };

  /// The most that are kept for it, noise included.
  [[nodiscard]] std::size_t open(std::uint64_t id) const;
  void heard(std::uint64_t id, std::size_t number, const Status& answer);
  void check_given(const StepContext& ctx, const Numbers& given, bool wants_more,
                   std::uint64_t newest);
  /// What turns before this one have consumed: for certain, or perhaps.
  [[nodiscard]] std::set<std::size_t> consumed(const StepContext& ctx, bool certain,
                                               std::uint64_t newest) const;

  Findings& findings_;
  const std::size_t most_;
  ProcedureExecutor* executor_ = nullptr;
  std::map<std::uint64_t, std::vector<Sent>> sent_;
  std::map<std::uint64_t, std::size_t> noise_;
  std::map<std::uint64_t, std::map<Turn, Numbers>> given_;
  std::set<std::pair<std::uint64_t, Turn>> ended_;  // undone steps
  std::set<std::uint64_t> has_ended_;
  std::vector<std::uint64_t> wanted_;
};

}  // namespace pv2::testing
