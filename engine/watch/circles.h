// SPDX-License-Identifier: Apache-2.0
//
// Circles: what the reasons of an explanation mean together: which procedures wait for each other
// in a circle, and which wait for no other procedure. Decision 17
// (docs/decisions/0017-kept-after-review.md) says why the scheduler is not asked for its circles.

#pragma once

#include "pv2/engine/explanation.h"

namespace pv2 {

/// Fills in `root_causes` and `cycles` from the procedures and their reasons. Needs no lock.
void find_circles_and_causes(Explanation& explanation);

}  // namespace pv2
