// SPDX-License-Identifier: Apache-2.0
//
// Refusals: why an operator's order is not accepted, in the words that the operator reads. These do
// not depend on the verb; repair_plan.cc has those that do.

#pragma once

#include <pv2/base/status.h>

#include <string>

#include "model/execution.h"

namespace pv2 {

/// The verb means nothing in the present state of the target.
[[nodiscard]] Status refused(std::string why);
/// A step of `execution` is running; the same order may be accepted soon.
[[nodiscard]] Status busy(const Execution& execution);

/// Why a record of `about` cannot be made now, or OK. While `about` stands still, the heads of the
/// domains around it wait for it. So if such a head is in flight, an order to end its domain is on
/// its way and would be published first. Under the state mutex.
[[nodiscard]] Status why_too_late(Execution& about);
/// Why an order cannot move `member`, which is parked, or OK. Under the state mutex.
[[nodiscard]] Status why_not_moved(Execution& member);
/// Why a step of `member` cannot be skipped, or OK. A skipped step gives its locks back, so the
/// work that it offloaded has to have ended. Under the state mutex.
[[nodiscard]] Status why_work_forbids(const Execution& member);

}  // namespace pv2
