// SPDX-License-Identifier: Apache-2.0
//
// Cycles: what follows from all reasons of an explanation together: which procedures wait for each
// other in a cycle, and which wait for no other procedure. Decision 17
// (docs/decisions/0017-kept-after-review.md) says why the scheduler is not asked for its cycles.

#pragma once

#include "pv2/engine/explanation.h"

namespace pv2 {

/// Fills in `root_causes` and `cycles` from the procedures and their reasons. Needs no lock.
void find_cycles_and_causes(Explanation& explanation);

}  // namespace pv2
