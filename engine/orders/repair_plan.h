// SPDX-License-Identifier: Apache-2.0
//
// Repair plan: what a verb means for a target at this moment, or why it is refused. Only this part
// decides that. repair_record.cc turns the plan into a record, repair_preview.cc into words.

#pragma once

#include <pv2/base/status.h>

#include <cstdint>

#include "core/engine_core.h"

namespace pv2 {

/// An order that may be carried out. It points into the live tree, so it is valid only until the
/// state mutex is released.
struct Order {
  enum class Kind : std::uint8_t {
    kRetryUndo,  ///< `about` is parked in an undo, which runs again.
    kRetryStep,  ///< `about` gave up or failed beyond a point of no return; its step runs again.
    kEndWait,    ///< A timed wait or a back-off of `about` ends now.
    kSkipUndo,   ///< `about` is parked in an undo, which counts as done.
    kSkipStep,   ///< Like kRetryStep, but the step counts as done and `following` is next.
    kSendBack,   ///< A domain that is parked beyond a point of no return is undone after all.
    kAbortRoot,  ///< The root goes forward: it is aborted. Messages::abort() has the last word.
    kBypass,     ///< The domain ends, at once or when no member of it is in the middle of a step.
  };
  Kind kind;
  Execution* about;             ///< The procedure whose record carries the order out.
  Execution* head;              ///< The head of the domain that the order is about.
  std::uint32_t step = 0;       ///< The step that is retried, awaited or skipped; 0: none.
  std::uint32_t following = 0;  ///< With kSkipStep: the next step; 0: `about` ends.
};

/// `next_step`: RepairNote::next_step.
[[nodiscard]] Result<Order> plan_order(EngineCore& core, Execution& target, RepairVerb verb,
                                       std::uint32_t next_step) PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
