// SPDX-License-Identifier: Apache-2.0
//
// The steps of LockProcedure. An order that is not legal locks nothing, so its first step runs at
// once and refuses it.

#include "pv2/procedures/lock_procedure.h"

#include <algorithm>

#include "pv2/procedures/table.h"

namespace pv2 {

LockSet LockProcedure::locks() const {
  LockSet locks;
  if (!check().ok()) return locks;
  if (order_.table.empty()) return locks.name_space(order_.name_space, order_.mode);
  if (order_.regions.empty()) {
    return locks.table(order_.name_space, order_.table, order_.mode);
  }
  for (const std::string& region : order_.regions) {
    locks.region(order_.name_space, order_.table, region, order_.mode);
  }
  return locks;
}

LockProcedure::Flow LockProcedure::execute_from_state(LockProcedureStep step, StepContext& ctx) {
  switch (step) {
    case LockProcedureStep::kAcquire:
      return acquire(ctx);
    case LockProcedureStep::kHeld:
      return held(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.Lock has no such step"});
}

Status LockProcedure::check() const {
  const auto bad = [](std::string why) { return Status(StatusCode::kInvalidArgument, why); };
  if (Status name = check_name("namespace", order_.name_space, false); !name.ok()) return name;
  if (order_.table.empty() && !order_.regions.empty()) {
    return bad("regions can be locked only together with the name of their table");
  }
  if (!order_.table.empty()) {
    if (Status name = check_name("table", order_.table, true); !name.ok()) return name;
  }
  const bool is_system = order_.name_space == kSystemNamespace;
  if (is_system && (order_.table.empty() || is_meta({order_.name_space, order_.table}))) {
    return {StatusCode::kFailedPrecondition,
            "the namespace '" + std::string(kSystemNamespace) + "' and the table " +
                to_string(meta_table()) +
                " cannot be locked, because the recovery of the catalogue takes these locks; lock "
                "what you are about to change"};
  }
  if (order_.mode != LockMode::kShared && order_.mode != LockMode::kExclusive) {
    return bad("a lock is shared or exclusive");
  }
  const bool is_table = !order_.table.empty() && order_.regions.empty();
  if (order_.mode == LockMode::kShared && !is_table) {
    return bad("only a table can be locked shared; lock the namespace or the regions exclusively");
  }
  if (order_.regions.size() > kRegionsMax) {
    return bad("at most " + std::to_string(kRegionsMax) +
               " regions can be locked by one procedure; lock their table");
  }
  for (const std::string& region : order_.regions) {
    if (Status name = check_name("region", region, false); !name.ok()) return name;
  }
  if (order_.description.size() > kDescriptionBytesMax) {
    return bad("the description of a lock has at most " + std::to_string(kDescriptionBytesMax) +
               " bytes");
  }
  if (order_.lease <= std::chrono::milliseconds(0) || order_.lease > kLeaseMax) {
    return bad(
        "the lease of a lock is at least 1 ms and at most 24 hours; send heartbeats to hold "
        "the lock for longer");
  }
  return {};
}

LockProcedure::Flow LockProcedure::acquire(StepContext& ctx) {
  if (Status bad = check(); !bad.ok()) return fail(std::move(bad));
  held_since_ = ctx.now();
  return next(LockProcedureStep::kHeld);
}

LockProcedure::Flow LockProcedure::held(StepContext& ctx) {
  if (ctx.signal(kUnlockSignal) != nullptr) return done(std::string(kUnlocked));
  bool renewed = false;
  while (ctx.signal(kHeartbeatSignal) != nullptr) renewed = true;
  // Another visit of the step: it has a deadline of its own.
  if (renewed) return next(LockProcedureStep::kHeld);
  if (ctx.timed_out()) {
    return done("lease expired: no heartbeat for " + std::to_string(order_.lease.count()) + " ms");
  }
  return wait_for(order_.lease);
}

}  // namespace pv2
