// SPDX-License-Identifier: Apache-2.0
//
// How a procedure finds the report that it waits for among its signals. A report of another server,
// or about another operation, is left alone: it answers a question that nobody asks any more.

#pragma once

#include <pv2/engine/step_context.h>

#include <optional>
#include <vector>

#include "pv2/procedures/server_calls.h"

namespace pv2 {

/// All reports that have arrived and that no step has consumed. To be asked once in a run.
[[nodiscard]] std::vector<RemoteReport> all_reports(StepContext& ctx);
/// The first one about `operation` (its kind, server and effect key).
[[nodiscard]] std::optional<RemoteReport> find_report(const std::vector<RemoteReport>& reports,
                                                      const RemoteOperation& operation);
/// For a step that waits for one report only.
[[nodiscard]] std::optional<RemoteReport> find_report(StepContext& ctx,
                                                      const RemoteOperation& operation);

}  // namespace pv2
