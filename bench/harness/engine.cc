// SPDX-License-Identifier: Apache-2.0
//
// A store that fails ends the program: there would be no figures.

#include "harness/engine.h"

#include <pv2/scheduler/master_procedure_scheduler.h>
#include <pv2/scheduler/simple_procedure_scheduler.h>

#include "harness/work_folder.h"

namespace pv2::bench {

std::string_view to_string(SchedulerKind kind) {
  return kind == SchedulerKind::kSimple ? "simple" : "master";
}

std::unique_ptr<ProcedureExecutor> open_engine(std::unique_ptr<ProcedureStore> store,
                                               ProcedureRegistry registry, EngineSetup setup) {
  ExecutorOptions options;
  options.store = std::move(store);
  options.registry = std::move(registry);
  options.clock = std::make_shared<SystemClock>();
  if (setup.scheduler == SchedulerKind::kSimple) {
    options.scheduler = std::make_unique<SimpleProcedureScheduler>(*options.clock);
  }
  options.workers = setup.workers;
  options.load = setup.load;
  options.pool_threads = 1;
  options.on_store_failure = [](const Status& status) { must(status, "the store"); };
  auto executor = must(ProcedureExecutor::open(std::move(options)), "opening an executor");
  executor->start();
  return executor;
}

}  // namespace pv2::bench
