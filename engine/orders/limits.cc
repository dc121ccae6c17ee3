// SPDX-License-Identifier: Apache-2.0
//
// LimitCommit makes a limit durable, or the end of one.

#include "orders/limits.h"

#include <memory>
#include <string>
#include <utility>

#include "core/effects.h"
#include "core/publisher.h"
#include "core/state_lock.h"
#include "model/check_limits.h"
#include "model/requests.h"
#include "pv2/engine/limits.h"
#include "records/limit_row.h"
#include "records/row_keys.h"

namespace pv2 {
namespace {

// Why the limit is not kept, or OK.
Status why_no_limit(const EngineCore& core, const ResourceKey& key, bool is_end)
    PV2_REQUIRES(core.state_mutex) {
  if (Status status = core.unavailable(); !status.ok()) return status;
  const auto& limited = core.state.limits;
  if (is_end || limited.size() < limits::kLimitedKeys || limited.contains(key)) return Status();
  return Status(StatusCode::kResourceExhausted,
                std::to_string(limited.size()) +
                    " keys and types have a limit, and more are not kept; end one with nullopt "
                    "first");
}

}  // namespace

void set_limit(EngineCore& core, Publisher& publisher, const ResourceKey& key,
               std::optional<std::uint32_t> limit, Reply<Status> reply) {
  Effects effects;
  if (Status status = check_key(key); !status.ok()) {
    effects.reply(std::move(reply), status.with_context("set_limit()"));
    return publisher.perform(effects);
  }
  auto commit = std::make_unique<LimitCommit>();
  commit->key = key;
  commit->limit = limit;
  if (limit) {
    std::string row;
    encode_limit(*limit, row);
    commit->batch.put(Space::kEngine, limit_key(key), row);
  } else {
    commit->batch.erase(Space::kEngine, limit_key(key));
  }
  {
    StateLock lock(core);
    if (Status refused = why_no_limit(core, key, !limit); !refused.ok()) {
      effects.reply(std::move(reply), std::move(refused));
    } else {
      commit->reply = std::move(reply);
      effects.commits.push_back(*commit.release());
    }
  }
  publisher.perform(effects);
}

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
