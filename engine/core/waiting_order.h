// SPDX-License-Identifier: Apache-2.0
//
// WaitingOrder: an order to end a domain while a step of it may be under way. The domain is being
// undone, or a member of it has used up its attempts. The order waits in memory until no member is
// in the middle of a step, and no step of the domain begins while it waits. Nothing of the order is
// durable before it is carried out, so a crash before that leaves no trace of it.

#pragma once

#include <pv2/base/ids.h>

#include "model/reply.h"
#include "pv2/engine/repair.h"

namespace pv2 {

struct WaitingOrder {
  /// How many may wait; more are refused. 64: each section that publishes looks at all of them.
  static constexpr std::size_t kMax = 64;

  ProcedureId head;  ///< The head of the domain that it ends.
  AuditEntry entry;
  Reply<Status> reply;
};

}  // namespace pv2
