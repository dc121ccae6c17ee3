// SPDX-License-Identifier: Apache-2.0
//
// Parking: why a member waits for an operator. A member may be parked itself, or stand still
// because its tree does. Then the member at which the tree is parked is looked up in the list that
// the root keeps of its parked members (RareOfDomain::standing), so that no large tree is walked.

#pragma once

#include <pv2/base/status.h>

#include <cstddef>

#include "model/execution.h"

namespace pv2 {

/// The oldest member within the domain of `head`, the widest one that has failed, whose undo is
/// parked. nullptr: there is none, or it is not among the first `looks` that are looked at. Takes
/// off `looks` how many were. Called under the state mutex.
[[nodiscard]] Execution* parked_undo(Execution& head, std::size_t& looks);

/// Why `member`, for which is_parked() holds and which is not quarantined, is parked. `looks` as
/// above. Called under the state mutex.
[[nodiscard]] Status why_parked(Execution& member, std::size_t& looks);

}  // namespace pv2
