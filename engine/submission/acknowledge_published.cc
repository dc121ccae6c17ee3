// SPDX-License-Identifier: Apache-2.0
//
// AcknowledgeCommit: what follows when the rows of a result that was received are deleted.

#include "core/effects.h"
#include "core/engine_core.h"
#include "model/requests.h"

namespace pv2 {

void AcknowledgeCommit::published(EngineCore& core, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  core.state.submissions.acknowledging.erase(id);
  // The row of the nonce may have been gone for a while, and a new procedure may have the nonce.
  const bool was_in_memory = core.state.submissions.nonces.remove(nonce, id);
  if (nonce && !was_in_memory && core.state.submissions.nonces_on_disk_only > 0) {
    --core.state.submissions.nonces_on_disk_only;
  }
  core.state.submissions.completed.erase(id);  // which had the use of the nonce
  core.state.submissions.retention.gone(id, age, bytes);
  // The result went first. If the orders did, a copy of one of them that comes after a crash would
  // be told that the tree has ended, and not that the order was carried out.
  if (!later.empty()) {
    auto garbage = std::make_unique<GarbageCommit>();
    garbage->rows = std::move(later);
    effects.garbage.push_back(std::move(garbage));
  }
  for (Reply<Status>& each : replies) effects.reply(std::move(each), Status());
  core.state.spares.acknowledges.give_back(std::unique_ptr<AcknowledgeCommit>(this), core.seat());
}

void AcknowledgeCommit::failed(EngineCore& core, const RequestFailure& why, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  const std::unique_ptr<AcknowledgeCommit> owned(this);
  core.state.submissions.acknowledging.erase(id);
  for (Reply<Status>& each : replies) effects.reply(std::move(each), why.unknown);
}

}  // namespace pv2
