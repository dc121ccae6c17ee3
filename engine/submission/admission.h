// SPDX-License-Identifier: Apache-2.0
//
// Admission: from a user's object to a durable first record. Everything that can be refused is
// refused before anything is reserved. Then the id and the nonce are reserved in memory and the
// insert is queued. A duplicate that arrives while the insert is on the way joins it and gets its
// answer, so no caller ever learns an id that is not durable, no thread is blocked meanwhile, and
// the insert always has a submitter that waits for it.

#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "core/engine_core.h"
#include "core/publisher.h"
#include "submission/candidate.h"

namespace pv2 {

class Results;

/// Thread-safe.
class Admission {
 public:
  using Submitter = InsertCommit::Submitter;

  Admission(EngineCore& core, Publisher& publisher, Results& results)
      : core_(core), publisher_(publisher), results_(results) {}

  /// Answers `submitter` once: with the id when the procedure is durable, or with the result when
  /// it has ended, or with the reason why the submission is refused.
  void submit(std::string_view type, std::unique_ptr<Procedure> procedure, SubmitOptions options,
              Submitter submitter);

  /// As submit(), with an object that is made from its encoded arguments.
  void submit_encoded(std::string_view type, std::string_view arguments, SubmitOptions options,
                      Submitter submitter);
  /// Answers once, with the procedure that `nonce` names when that is durable. kNotFound: the nonce
  /// is not known. Submits nothing. May read the store.
  void find(const Nonce& nonce, Reply<Result<Submitted>> reply);

  /// As submit(), for a step, which writes the insert in the batch of its own record. nullptr:
  /// `submitter` was answered, and there is nothing to insert; after kUnavailable the step has to
  /// run again. The limits for callers do not hold for steps: a step may submit however many
  /// procedures are live, and while the executor stops. The caller publishes what it gets, or calls
  /// withdraw().
  std::unique_ptr<InsertCommit> reserve_for_step(std::string_view type,
                                                 std::unique_ptr<Procedure> procedure,
                                                 SubmitOptions options, Submitter submitter);
  /// Undoes reserve_for_step(): the step ended without a record.
  void withdraw(std::unique_ptr<InsertCommit> commit) {
    withdraw(std::move(commit), Withdrawal::kByStep);
  }

 private:
  /// Why a submission is taken back: its step has no record, or the caller gets an exception.
  enum class Withdrawal : std::uint8_t { kByStep, kByException };

  /// What becomes of a submission.
  struct Verdict {
    enum class Kind : std::uint8_t {
      kFresh,     ///< It is new: an id and the nonce are reserved for it.
      kRefused,   ///< `refusal` says why.
      kReplayed,  ///< A duplicate of `original`, which is durable.
      kJoins,     ///< A duplicate of an insert that is on the way, `pending`.
      kPutOff,    ///< Of a step, and it must not join `pending`; `refusal` says so.
      kAskStore,  ///< Memory does not know the nonce, but the store may.
    };
    Kind kind = Kind::kFresh;
    Status refusal{};
    ProcedureId original{};
    InsertCommit* pending = nullptr;
  };
  /// What the store said of a nonce.
  struct FromStore {
    bool was_asked = false;
    std::uint64_t evictions = 0;        ///< EngineState::evictions, before it was asked.
    std::optional<KnownNonce> entry{};  ///< The store knows the nonce.
    Status failure{};                   ///< The store could not answer.
  };

  struct InCallback;

  void admit_in_section(std::unique_ptr<InCallback> request, Effects& effects)
      PV2_REQUIRES(core_.state_mutex);
  std::unique_ptr<InsertCommit> reserve(Candidate& candidate, Submitter submitter,
                                        Effects& effects);
  // The checks: they change nothing.
  [[nodiscard]] Verdict judge(const Candidate& candidate, const Execution* step,
                              const FromStore& from_store) PV2_REQUIRES(core_.state_mutex);
  [[nodiscard]] Verdict judge_duplicate(const Candidate& candidate, const KnownNonce& entry,
                                        const Execution* step) PV2_REQUIRES(core_.state_mutex);
  [[nodiscard]] Status check_new(const Candidate& candidate, bool by_caller) const
      PV2_REQUIRES(core_.state_mutex);
  [[nodiscard]] FromStore ask_store(const Nonce& nonce, std::uint64_t evictions) const;

  /// As judge(), for a nonce alone; kRefused with kNotFound if nobody knows it.
  [[nodiscard]] Verdict look_up(const Nonce& nonce, const FromStore& from_store)
      PV2_REQUIRES(core_.state_mutex);

  /// Does what the verdict says: answers `submitter`, has it wait, or makes a request that it waits
  /// for.
  std::unique_ptr<InsertCommit> act(const Verdict& verdict, Candidate& candidate,
                                    Submitter submitter, Effects& effects)
      PV2_REQUIRES(core_.state_mutex);
  std::unique_ptr<InsertCommit> enter(Candidate& candidate, Submitter submitter, Effects& effects)
      PV2_REQUIRES(core_.state_mutex);
  void take(ProcedureId id, const Nonce& nonce, Reply<Result<ProcedureResult>> taker,
            Effects& effects) PV2_REQUIRES(core_.state_mutex);
  void withdraw(std::unique_ptr<InsertCommit> commit, Withdrawal why) noexcept;
  void check_unknown(const Nonce& nonce, ProcedureId id) const;
  void fill(Execution& execution, InsertCommit& commit, bool is_encoded);

  EngineCore& core_;
  Publisher& publisher_;
  Results& results_;
};

}  // namespace pv2
