// SPDX-License-Identifier: Apache-2.0
//
// Results: who waits for the end of a procedure, and what is known of those that have ended. Recent
// results are in memory; older ones are read from the store; acknowledged or forgotten ones are
// recognisable as such.

#pragma once

#include "engine_core.h"
#include "kept_result.h"
#include "publisher.h"
#include "stored_result.h"

namespace pv2 {

/// Keeps the result of a root that has ended, and answers everybody who waits for it.
void keep_result(EngineCore& core, Execution& root, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Answers all that wait for `root`, in the order in which they came. They share one copy of the
/// result, which lives until the last of them was told.
void answer_waiters(EngineCore& core, Execution& root, const Result<ProcedureResult>& result,
                    Effects& effects) PV2_REQUIRES(core.state_mutex);
/// The store has failed: everybody who waits for a result is told.
void answer_all_waiters(EngineCore& core, Effects& effects) PV2_REQUIRES(core.state_mutex);

/// Thread-safe.
class Results {
 public:
  Results(EngineCore& core, Publisher& publisher) : core_(core), publisher_(publisher) {}

  /// Returns a ticket for withdraw(), or 0 when the answer was given at once.
  std::uint64_t wait(ProcedureId id, Reply<Result<ProcedureResult>> reply);
  /// Takes a waiter back; false when its answer is already on the way.
  bool withdraw(ProcedureId id, std::uint64_t ticket);
  void acknowledge(ProcedureId id, Reply<Status> reply) {
    acknowledge(id, std::move(reply), nullptr);
  }
  /// The same for one whose time is over. `kept` may be out of date, as it was read before this: if
  /// its result is another one, or gone, only its date is deleted.
  void expire(const KeptResult& kept, Reply<Status> reply) {
    acknowledge(kept.id, std::move(reply), &kept);
  }
  /// Why nothing can be done to `id`, which is not live: it has ended (kFailedPrecondition), is
  /// forgotten (kExpired), or never was (kNotFound). May read the store.
  [[nodiscard]] Status why_not_live(ProcedureId id);
  /// Answers everybody who still waits with `status`.
  void answer_all(const Status& status);
  /// What the store says of a root that has ended (kExpired: nothing).
  Result<Completed> read_stored(ProcedureId id);

 private:
  void acknowledge(ProcedureId id, Reply<Status> reply, const KeptResult* kept);
  /// Acknowledges when the rows of the descendants are deleted.
  [[nodiscard]] Reply<Status> again_after_garbage(ProcedureId id, Reply<Status> reply);
  /// Fills in what is to be deleted for a result that is not in memory, with the keys of its audit
  /// rows in `audits`.
  Status look_at_rows(AcknowledgeCommit& commit, const KeptResult* kept,
                      std::vector<std::string>& audits);
  /// OK, unless open() could not read the record of `id`.
  Status why_set_aside(ProcedureId id);
  void delete_date(const KeptResult& kept, Effects& effects);

  EngineCore& core_;
  Publisher& publisher_;
};

}  // namespace pv2
