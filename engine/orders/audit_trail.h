// SPDX-License-Identifier: Apache-2.0
//
// AuditTrail: the orders that were carried out in one tree, as the store has them. They are there
// from the commit of each order until the result of the root is acknowledged.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <optional>
#include <vector>

#include "core/engine_core.h"
#include "pv2/engine/repair.h"

namespace pv2 {

struct AuditTrail {
  ProcedureId root;                   ///< Of the tree; as far as that is known.
  bool live = false;                  ///< The procedure that was asked for is live.
  std::vector<AuditEntry> entries{};  ///< Oldest first.
};
/// The orders that were carried out in the tree of `id`, if it is live; else those whose rows lie
/// with `id`, a root or a member that an order was about or named. Reads the store.
[[nodiscard]] Result<AuditTrail> read_audit(EngineCore& core, ProcedureId id)
    PV2_EXCLUDES(core.state_mutex);

/// The order that was carried out under `nonce` in the tree of `id`; nullopt: none was, as far as
/// there are rows of the tree. An abort whose root ended before it is none. kExpired: the result of
/// the tree is gone, and with it what would tell. Any other error: that cannot be told now. Reads
/// the store if the tree is not live or has orders: all orders of the tree.
///
/// Call it when no order under `nonce` is on its way (OrderNonces), or to look for another order
/// than that one; and not after a failure of the store: what it has then need not be durable.
[[nodiscard]] Result<std::optional<AuditEntry>> find_order(EngineCore& core, ProcedureId id,
                                                           const Nonce& nonce)
    PV2_EXCLUDES(core.state_mutex);

}  // namespace pv2
