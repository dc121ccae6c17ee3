// SPDX-License-Identifier: Apache-2.0
//
// StorySignals: the senders of signals to the procedures of a simulated run, and the checks of what
// arrives. A sender that gets no answer sends the signal again in the next life; to the engine each
// copy is a signal of its own, and here it has a payload of its own. An accepted signal is
// delivered exactly once, in the order of sending; a refused one never is.

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
  /// `most`: how many signals the executor keeps for one procedure (max_signals).
  StorySignals(Findings& findings, std::size_t most) : findings_(findings), most_(most) {}

  /// Senders that got no answer in the previous life send again.
  void begin_life(ProcedureExecutor& executor);
  /// Sends a signal, which may be refused.
  void send(ProcedureId to);
  /// Like send(), but under a name that no step asks for.
  void send_noise(ProcedureId to);

  /// A run takes `count` signals. False: some are missing, and a sender will be asked for one.
  /// `newest` is the last visit of the procedure that was ever seen.
  bool take(StepContext& ctx, std::size_t count, std::uint64_t newest);
  /// The undo of a step has ended.
  void undo_ended(const StepContext& ctx) { ended_.insert({ctx.id().value, turn_of(ctx)}); }
  /// An order made a turn count as done: the signals that it was given go to later turns.
  void was_skipped(std::uint64_t id, Turn turn) { given_[id].erase(turn); }
  /// Whether a sender was told that the procedure has ended.
  [[nodiscard]] bool has_ended(std::uint64_t id) const { return has_ended_.contains(id); }

  /// How many signals procedures wait for, and sending one of them.
  [[nodiscard]] std::size_t due() const noexcept { return wanted_.size(); }
  void send_due(std::size_t which);

 private:
  using Numbers = std::vector<std::size_t>;  // places in sent_ of one procedure
  struct Sent {
    enum class Answer : std::uint8_t { kNone, kUnknown, kAccepted, kRefused };
    Answer answer = Answer::kNone;
  };

  /// The most signals that can be kept for the procedure, noise included.
  [[nodiscard]] std::size_t open(std::uint64_t id) const;
  void heard(std::uint64_t id, std::size_t number, const Status& answer);
  void check_given(const StepContext& ctx, const Numbers& given, bool wants_more,
                   std::uint64_t newest);
  /// What turns before this one have consumed, for certain or perhaps.
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
