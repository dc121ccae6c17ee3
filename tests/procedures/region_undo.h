// SPDX-License-Identifier: Apache-2.0
//
// AbortedRegions: a split or merge that an operator aborts after a given number of turns, with what
// must come out: all of it, or nothing of it, and no row lost. It tests nothing by itself.

#pragma once

#include <pv2/engine/inspection.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "procedure_plot.h"
#include "region_world.h"

namespace pv2::testing {

/// What happens to an operation besides its abort. A plain value.
struct AbortPlan {
  std::function<ProcedureId(RegionWorld&)> submit;
  std::size_t regions = 1;
  Delivery delivery = Delivery::kInline;
  /// Called right after the abort was accepted.
  std::function<void(RegionWorld&)> disturb{};
  bool compares_servers = true;  ///< Nothing but the operation changes the cluster.
};

/// Aborts the operation after `turns` turns of the executor. Nullopt: it had ended before.
/// Otherwise whether the abort was accepted.
inline std::optional<bool> abort_after(const AbortPlan& plan, std::size_t turns) {
  CAPTURE(turns);
  RegionWorld world(plan.regions, 3, plan.delivery);
  const std::string before = show(world.cluster.snapshot());
  const ProcedureId id = plan.submit(world);
  for (std::size_t turn = 0; turn < turns; ++turn) {
    if (world.executor->run_until_idle(1) > 0) continue;
    if (world.cluster.deliver_one()) continue;
    if (world.cluster.deliver_reports(*world.executor) > 0) continue;
    if (world.executor->inspect().live_procedures() == 0) return std::nullopt;
    world.executor.let_pass(std::chrono::seconds(1));
  }
  const Status answer = world.abort(id);
  const bool accepted = answer.ok();
  if (plan.disturb) plan.disturb(world);
  world.executor.run();

  const ProcedureResult result = world.executor.result(id);
  if (accepted) {
    CHECK(result.state == ProcedureState::kRolledBack);
    CHECK(result.status.code() == StatusCode::kAborted);
    if (plan.compares_servers) CHECK(show(world.cluster.snapshot()) == before);
  } else {
    CHECK(result.status.to_string() == "OK");
  }
  world.check_end();
  return accepted;
}

/// Aborts the operation after each number of turns, until it ends before the abort. Returns how
/// many aborts were accepted.
inline std::size_t abort_everywhere(const AbortPlan& plan) {
  std::size_t accepted = 0;
  for (std::size_t turns = 0;; ++turns) {
    REQUIRE(turns < 1000);
    const std::optional<bool> answer = abort_after(plan, turns);
    if (!answer) return accepted;
    accepted += *answer ? 1 : 0;
  }
}

}  // namespace pv2::testing
