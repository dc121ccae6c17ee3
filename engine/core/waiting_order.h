// SPDX-License-Identifier: Apache-2.0
//
// WaitingOrder: an order to end what is being undone, or of which a member used up its attempts,
// while a step of it may be under way. It waits in memory until nobody is in the middle of a step;
// meanwhile nothing of the tree begins. Nothing of it is durable before it is carried out, so a
// crash until then leaves no trace of it.

#pragma once

#include <pv2/base/ids.h>

#include "model/reply.h"
#include "pv2/engine/repair.h"

namespace pv2 {

struct WaitingOrder {
  /// In a run; more are refused. 64: each section that publishes looks at all of them.
  static constexpr std::size_t kMax = 64;

  ProcedureId head;  ///< Of what it ends.
  AuditEntry entry;
  Reply<Status> reply;
};

}  // namespace pv2
