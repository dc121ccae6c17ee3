// SPDX-License-Identifier: Apache-2.0
//
// Acknowledgements: delete the result of a root that has ended, with its nonce, its date and what
// operators ordered about its tree. A caller acknowledges a result that it has received; Expiry
// acknowledges one that was kept long enough. One acknowledgement per result is on the way at a
// time; a second one joins it. The rows of the tree's descendants go first: a crash in between
// leaves the result, which can be acknowledged again. Many audit rows go after the result
// (acknowledge_published.cc): what a crash leaves of them is deleted by the next open().

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/engine_core.h"
#include "records/kept_result.h"

namespace pv2 {

class Publisher;
struct Effects;

/// Thread-safe.
class Acknowledgements {
 public:
  Acknowledgements(EngineCore& core, Publisher& publisher) : core_(core), publisher_(publisher) {}

  /// Answers once: OK when the result is durably gone; kFailedPrecondition while the
  /// procedure is live, kExpired when the result is gone already, kNotFound when there never was
  /// such a procedure. May read the store.
  /// Waits until the store is loaded.
  void acknowledge(ProcedureId id, Reply<Status> reply);
  /// The result of `id` was told to the one that it is for, in this life.
  void acknowledge_told(ProcedureId id) { acknowledge(id, {}, nullptr); }
  /// As acknowledge(), for a result whose time is over. `kept` may be out of date, because it was
  /// read earlier: if it is not the date of the result that is there now, or if there is no result,
  /// only that date is deleted.
  void expire(const KeptResult& kept, Reply<Status> reply) {
    acknowledge(kept.id, std::move(reply), &kept);
  }

 private:
  /// What becomes of an acknowledgement.
  struct Verdict {
    enum class Kind : std::uint8_t {
      kFresh,    ///< The result is to be deleted; `completed`, if it is in memory.
      kRefused,  ///< `refusal` says why.
      kStale,    ///< Only the date is deleted: it belongs to no result that can be deleted.
      kJoins,    ///< `pending` is on the way already.
      kWaits,    ///< Until the rows of the tree's descendants are deleted: `garbage`.
    };
    Kind kind = Kind::kFresh;
    Status refusal{};
    const Completed* completed = nullptr;
    AcknowledgeCommit* pending = nullptr;
    PendingGarbage* garbage = nullptr;
  };
  /// Which rows of a result there are. Of one that is not in memory, the store has to say.
  struct Rows {
    bool is_known = false;
    bool audited = false;
    bool in_place = false;
  };
  using Keys = std::vector<std::string>;

  struct InCallback;

  void acknowledge(ProcedureId id, Reply<Status> reply, const KeptResult* kept);
  void acknowledge_in_section(InCallback& request, Effects& effects)
      PV2_REQUIRES(core_.state_mutex);
  /// Changes nothing.
  [[nodiscard]] Verdict judge(ProcedureId id, const KeptResult* kept)
      PV2_REQUIRES(core_.state_mutex);
  /// Does what the verdict says: answers the caller, has it wait, or makes a request.
  std::unique_ptr<AcknowledgeCommit> act(const Verdict& verdict, ProcedureId id,
                                         Reply<Status> reply, const KeptResult* kept,
                                         Effects& effects) PV2_REQUIRES(core_.state_mutex);
  std::unique_ptr<AcknowledgeCommit> begin(ProcedureId id, const Completed* completed,
                                           Reply<Status> reply) PV2_REQUIRES(core_.state_mutex);
  [[nodiscard]] Reply<Status> once_deleted(ProcedureId id, Reply<Status> reply);
  Result<Keys> erase_rows(AcknowledgeCommit& commit, const Rows& rows, const KeptResult* kept);
  Result<Keys> erase_stored(AcknowledgeCommit& commit, const KeptResult* kept);
  void give_up(AcknowledgeCommit& commit, const Status& why, const KeptResult* kept);
  void delete_date(const KeptResult& kept, Effects& effects);

  EngineCore& core_;
  Publisher& publisher_;
};

}  // namespace pv2
