// SPDX-License-Identifier: Apache-2.0
//
// Admission: from a user's object to a durable first record. Everything that can be refused is
// refused before anything is reserved; then the id and the nonce are reserved in memory and the
// insert is queued. Whoever submits the same nonce meanwhile joins that insert and gets its answer:
// no id that is not durable, nobody parked, no owner that gives up.

#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine_core.h"
#include "publisher.h"

namespace pv2 {

/// What is recorded of a submission that is made now, and what an older program would have
/// recorded of the same one.
struct Fingerprints {
  Fingerprint exact;
  Fingerprint joined;

  [[nodiscard]] bool match(const Fingerprint& known) const noexcept {
    return known == (known.form == Fingerprint::Form::kJoined ? joined : exact);
  }
};
/// Over type, owner and arguments, put together in `scratch`.
[[nodiscard]] Fingerprints fingerprints_of(const Execution& execution, std::string& scratch);

/// Thread-safe.
class Admission {
 public:
  Admission(EngineCore& core, Publisher& publisher) : core_(core), publisher_(publisher) {}

  /// Answers `submitter` once: with the id when the procedure is durable, or with why it is
  /// refused.
  void submit(std::string_view type, std::unique_ptr<Procedure> procedure, SubmitOptions options,
              InsertCommit::Submitter submitter);

  /// The same for a step, which makes the insert durable in its own batch: nullptr when nothing is
  /// to be inserted, because `submitter` was answered; kUnavailable: not now, let the step run
  /// again. The step's limits are not the caller's: it is accepted however many are live, and while
  /// the executor stops. Call withdraw() or publish it.
  std::unique_ptr<InsertCommit> reserve_for_step(std::string_view type,
                                                 std::unique_ptr<Procedure> procedure,
                                                 SubmitOptions options,
                                                 InsertCommit::Submitter submitter);
  /// Takes back what reserve_for_step() gave: the step did not come to its end.
  void withdraw(std::unique_ptr<InsertCommit> commit);

 private:
  std::unique_ptr<InsertCommit> reserve(std::string_view type, std::unique_ptr<Procedure> procedure,
                                        SubmitOptions options, InsertCommit::Submitter submitter,
                                        Effects& effects);
  /// What is known of a nonce.
  enum class Known : std::uint8_t {
    kNew,       ///< Nobody used it.
    kAnswered,  ///< A duplicate, or a misuse: the submitter was answered, or joined.
    kAskStore,  ///< Not in memory, but the store may know it.
  };
  /// What a submission is known by.
  struct Key {
    Nonce nonce;
    Fingerprints fingerprints;
  };
  Known look_up(const Key& wanted, InsertCommit::Submitter& submitter, Effects& effects)
      PV2_REQUIRES(core_.state_mutex);
  void answer_known(const Key& wanted, const NonceEntry& entry, InsertCommit::Submitter& submitter,
                    Effects& effects) PV2_REQUIRES(core_.state_mutex);
  /// Asserts, now and then, that the store does not know a nonce that was taken for new.
  void check_unknown(const Nonce& nonce, ProcedureId id);
  Known look_up_in_store(const Key& wanted, InsertCommit::Submitter& submitter, Effects& effects);
  [[nodiscard]] Status check_size(const Execution& execution) const;
  [[nodiscard]] Status check_expiry(const SubmitOptions& options, WallTime now) const;
  void fill(std::unique_ptr<Execution> execution, InsertCommit& commit);

  EngineCore& core_;
  Publisher& publisher_;
};

}  // namespace pv2
