// SPDX-License-Identifier: Apache-2.0
//
// The handful of headers that most programs need, in reading order: it doubles as the tour.

#pragma once

// What a failure looks like, and what time is.
#include <pv2/base/clock.h>
#include <pv2/base/status.h>
// What you write: a state machine, its table of steps, and what a step may ask for.
#include <pv2/engine/state_machine_procedure.h>
#include <pv2/engine/step_context.h>
#include <pv2/engine/step_table.h>
// Which types there are, and who runs them.
#include <pv2/engine/executor_options.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/engine/procedure_registry.h>
#include <pv2/engine/procedure_result.h>
// Verbs that do not block; what can be seen of an executor; what an operator may do.
#include <pv2/engine/async_executor.h>
#include <pv2/engine/inspection.h>
#include <pv2/engine/operator_console.h>
// Where everything is kept.
#include <pv2/store/leveldb_procedure_store.h>
#include <pv2/store/noop_procedure_store.h>
