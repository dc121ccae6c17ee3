// SPDX-License-Identifier: Apache-2.0
//
// The constructor and the destructor need the complete types of what the state owns.

#include "core/engine_state.h"

#include <pv2/store/procedure_store.h>

#include "core/early_wait.h"
#include "model/outstanding_work.h"
#include "model/requests.h"
#include "model/tree_work.h"
#include "pv2/engine/completion.h"
#include "pv2/engine/executor_options.h"
#include "pv2/engine/procedure.h"

namespace pv2 {

EngineState::EngineState(const ExecutorOptions& options, const EngineAge& age)
    : ids(options.store->name(), options.store->limits(), age),
      submissions{
          .completed{options.max_results_in_memory, options.max_result_bytes_in_memory},
          .retention{options.retention, options.store->keeps_records()},
      },
      spares(options.workers) {}

EngineState::~EngineState() = default;

}  // namespace pv2
