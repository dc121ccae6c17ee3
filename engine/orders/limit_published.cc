// SPDX-License-Identifier: Apache-2.0
//
// LimitCommit: a limit takes effect, or ends, when its record is durable.

#include "core/effects.h"
#include "core/engine_core.h"
#include "model/requests.h"

namespace pv2 {

void LimitCommit::published(EngineCore& core, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  const std::unique_ptr<LimitCommit> owned(this);
  core.set_limit(key, limit);
  effects.reply(std::move(reply), Status());
}

void LimitCommit::failed(EngineCore& /*core*/, const RequestFailure& why, Effects& effects) {
  const std::unique_ptr<LimitCommit> owned(this);
  effects.reply(std::move(reply), why.unknown);
}

}  // namespace pv2
