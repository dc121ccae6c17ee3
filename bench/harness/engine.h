// SPDX-License-Identifier: Apache-2.0
//
// Executors for the benchmarks: which scheduler, how many workers. A pool of one thread serves the
// callbacks, because a second would only take a core from the workers.

#pragma once

#include <pv2/engine/executor_options.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/engine/procedure_registry.h>
#include <pv2/store/procedure_store.h>

#include <memory>
#include <string_view>

namespace pv2::bench {

enum class SchedulerKind { kSimple, kMaster };
[[nodiscard]] std::string_view to_string(SchedulerKind kind);

/// What differs between the executors of the benchmarks. A value.
struct EngineSetup {
  SchedulerKind scheduler = SchedulerKind::kMaster;
  unsigned workers = 1;
  Load load = Load::kBeforeOpenReturns;
};

/// An executor on `store`, opened and started; ends the program when that fails. `registry` holds
/// the types; their dependencies must outlive the executor.
std::unique_ptr<ProcedureExecutor> open_engine(std::unique_ptr<ProcedureStore> store,
                                               ProcedureRegistry registry, EngineSetup setup = {});

}  // namespace pv2::bench
