// SPDX-License-Identifier: Apache-2.0
//
// The limits of an operator on keys and types. One is in effect when it is durable.

#pragma once

#include <pv2/base/resource.h>
#include <pv2/base/status.h>

#include <cstdint>
#include <optional>

#include "core/engine_core.h"
#include "model/reply.h"

namespace pv2 {

class Publisher;

/// Sets the limit of `key`; nullopt: ends it. The reply is OK when that is durable;
/// kInvalidArgument: the key is out of its bounds; kResourceExhausted: too many keys have a limit.
void set_limit(EngineCore& core, Publisher& publisher, const ResourceKey& key,
               std::optional<std::uint32_t> limit, Reply<Status> reply)
    PV2_EXCLUDES(core.state_mutex);

}  // namespace pv2
