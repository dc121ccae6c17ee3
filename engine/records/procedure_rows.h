// SPDX-License-Identifier: Apache-2.0
//
// The rows that a record adds to its batch: a header and a state in Space::kProcedure while the
// procedure is live; after the end of a root both of them as one row in Space::kResult, and a date
// in Space::kEngine. So a start reads the live procedures and nothing else.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/store/commit_request.h>

#include <cstdint>

#include "model/execution.h"

namespace pv2 {

/// Adds the header and the state of a new procedure. If `first` ends a root at once, its result is
/// dated and moved as in update_state().
void insert_rows(const Execution& execution, const Transition& first, RowBatch& batch);

/// Adds the state as it will be after `next`. `ran_step` is the step that ran, or was undone.
///
/// If `next` ends a root, its result is dated and, with `next.in_results`, header and state move to
/// Space::kResult. If the last record was such an end (an abort was durable before it), `next`
/// takes it back: its date is deleted, and header and state move back.
void update_state(const Execution& execution, const Transition& next, std::uint32_t ran_step,
                  RowBatch& batch);

/// `batch` holds `last`, which ends the root `execution`. Adds that record again with the date
/// `age`; whatever else is in the batch stays.
void redate_end(const Execution& execution, Transition& last, Duration age, std::uint32_t ran_step,
                RowBatch& batch);

}  // namespace pv2
