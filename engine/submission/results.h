// SPDX-License-Identifier: Apache-2.0
//
// Results: answers callers that ask for the end of a procedure. Recent results are in memory; older
// ones are read from the store; acknowledged or forgotten ones are recognised as such.

#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "core/engine_core.h"
#include "records/kept_result.h"
#include "submission/acknowledgements.h"
#include "submission/ended_procedure.h"

namespace pv2 {

class Publisher;
struct EarlyWait;
struct Effects;

/// Answers the waiters of a root that has ended, and keeps its result if somebody may ask for it.
void tell_result(EngineCore& core, Execution& root, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Thread-safe.
class Results {
 public:
  Results(EngineCore& core, Publisher& publisher)
      : core_(core), publisher_(publisher), acknowledgements_(core, publisher) {}

  /// Answers once, when the procedure has ended, or with the reason why no answer will come. May
  /// read the store. Returns a ticket for withdraw(), or 0 when the answer was given at once.
  std::uint64_t wait(ProcedureId id, Reply<Result<ProcedureResult>> reply);
  /// Gives the answer as `reply` does; if that is a result, it is deleted: with `nonce`, by which
  /// it could be found, after it was told, and otherwise before. A caller that blocks for the
  /// answer deletes the result itself.
  [[nodiscard]] Reply<Result<ProcedureResult>> forgetting(Reply<Result<ProcedureResult>> reply,
                                                          const Nonce& nonce);
  /// The store is loaded: waits that came earlier join the waiters of their procedures, or are
  /// answered.
  void admit_early_waits();
  /// Takes a waiter back; false when its answer is already on the way.
  bool withdraw(ProcedureId id, std::uint64_t ticket);
  /// See Acknowledgements.
  void acknowledge(ProcedureId id, Reply<Status> reply) {
    acknowledgements_.acknowledge(id, std::move(reply));
  }
  /// See Acknowledgements.
  void acknowledge_told(ProcedureId id) { acknowledgements_.acknowledge_told(id); }
  /// See Acknowledgements.
  void expire(const KeptResult& kept, Reply<Status> reply) {
    acknowledgements_.expire(kept, std::move(reply));
  }
  /// Why nothing can be done to `id`, which is not live: it has ended (kFailedPrecondition), is
  /// forgotten (kExpired), or never was (kNotFound). May read the store.
  [[nodiscard]] Status why_not_live(ProcedureId id);
  /// Answers every waiter, and every acknowledger that waits for rows to be deleted, with `status`.
  void answer_all(const Status& status);
  /// What the store says of a root that has ended (kExpired: nothing).
  [[nodiscard]] Result<Completed> read_stored(ProcedureId id) { return read_ended(core_, id); }

 private:
  /// Where the answer to a waiter comes from: from the end of `live`, from memory, or (neither)
  /// from the store.
  struct Source {
    Execution* live = nullptr;
    std::optional<Result<ProcedureResult>> answer{};
  };
  [[nodiscard]] Source look_up(ProcedureId id) PV2_REQUIRES(core_.state_mutex);
  void admit(EarlyWait& wait, Effects& effects) PV2_REQUIRES(core_.state_mutex);

  EngineCore& core_;
  Publisher& publisher_;
  Acknowledgements acknowledgements_;
};

}  // namespace pv2
