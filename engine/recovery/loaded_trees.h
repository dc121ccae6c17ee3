// SPDX-License-Identifier: Apache-2.0
//
// LoadedTrees: links the procedures that were read into trees, in order of id. Ids grow from parent
// to child, so a procedure's ancestors are linked before it. At the end of each section that links,
// the procedures that held locks take them. Where the record of a root is lost, a stand-in takes
// its place. Nothing runs yet.

#pragma once

#include <pv2/base/clock.h>

#include <utility>
#include <vector>

#include "core/engine_core.h"
#include "recovery/record_reader.h"

namespace pv2 {

/// Why the tree of `member` has to be quarantined.
struct TreeProblem {
  Execution* member;
  Status why;
};

/// Owned by one thread.
class LoadedTrees {
 public:
  /// Timed waits go on from the time of construction: reading may take long.
  explicit LoadedTrees(const Clock& clock)
      : began_(clock.steady_now()), began_at_(clock.wall_now()) {}

  /// Whether `loaded` has left its tree, which is live: it ended with a domain whose failure was
  /// reported, and a crash came before its rows were deleted. Called once for each, in order of id.
  [[nodiscard]] bool has_left(EngineCore& core, const LoadedProcedure& loaded)
      PV2_REQUIRES(core.state_mutex);
  /// Links `loaded`, which has not left. From now on the table of live executions has it. Its locks
  /// are restored by the next restore_locks().
  void link(EngineCore& core, LoadedProcedure& loaded) PV2_REQUIRES(core.state_mutex);
  /// Tells the scheduler of the procedures that were linked since the last call. Those that held
  /// their locks take them. Called at the end of each section that links.
  void restore_locks(EngineCore& core) PV2_REQUIRES(core.state_mutex);
  /// Gives stand-ins the nonces of the roots in whose place they are. After the last link().
  Status find_lost_nonces(EngineCore& core) PV2_EXCLUDES(core.state_mutex);
  /// The stand-ins, by the id of the root that each stands for. After the last link().
  [[nodiscard]] FlatMap<ProcedureId, Execution*> stand_ins() const;
  /// The tree of `member` will be quarantined.
  void add_problem(Execution& member, Status why) {
    problems_.push_back({&member, std::move(why)});
  }

  [[nodiscard]] std::vector<Execution*>& roots() noexcept { return roots_; }
  [[nodiscard]] const std::vector<TreeProblem>& problems() const noexcept { return problems_; }
  /// The batch that wrote the last record, of members that may be in the middle of a step.
  [[nodiscard]] const FlatMap<ProcedureId, CommitSequence>& recorded() const noexcept {
    return recorded_;
  }

 private:
  void place(EngineCore& core, Execution& execution, LoadedProcedure& loaded)
      PV2_REQUIRES(core.state_mutex);
  [[nodiscard]] Execution* root_of(EngineCore& core, const Execution& execution,
                                   const LoadedProcedure& loaded) PV2_REQUIRES(core.state_mutex);
  /// The finished member, `parent` or above it, whose type is not registered; no id: there is none.
  [[nodiscard]] ProcedureId untyped_above(ProcedureId parent) const;
  /// Notes what untyped_above() has to know for the children of `execution`.
  void note_untyped(const Execution& execution, ProcedureId above);
  Execution& stand_in_for(EngineCore& core, ProcedureId root, const Execution& member)
      PV2_REQUIRES(core.state_mutex);

  // Both clocks at one moment.
  const SteadyTime began_;
  const WallTime began_at_;
  ProcedureId last_linked_;
  std::vector<Execution*> roots_;  // stand-ins too
  EntryList holders_;              // linked in this section; they held their locks
  EntryList parked_;               // linked in this section; they held none
  std::vector<TreeProblem> problems_;
  FlatMap<ProcedureId, CommitSequence> recorded_;
  FlatMap<ProcedureId, bool> left_;  // members that have left
  // Finished members, no roots, whose type is not registered, and all below them: with the id of
  // that member.
  FlatMap<ProcedureId, ProcedureId> untyped_;
};

}  // namespace pv2
