// SPDX-License-Identifier: Apache-2.0
//
// MessageCommit: what follows when an abort or a signal is durable; see messages.cc.

#include "core/effects.h"
#include "core/engine_core.h"
#include "model/requests.h"
#include "orders/messages.h"

namespace pv2 {

void MessageCommit::published(EngineCore& core, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  message_published(core, *this, effects);
}

void MessageCommit::failed(EngineCore& core, const RequestFailure& why, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  const std::unique_ptr<MessageCommit> owned(this);
  core.state.orders.aborting.erase(to);
  for (Reply<Status>& each : replies) effects.reply(std::move(each), why.unknown);
}

}  // namespace pv2
