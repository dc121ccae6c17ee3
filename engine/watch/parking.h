// SPDX-License-Identifier: Apache-2.0
//
// Parking: why a member waits for an operator. A member may be parked itself, or stand still
// because its tree, or its part of the tree, does. Then the member at which that is parked is
// looked up in the list that the root keeps of its parked members (RareOfDomain::standing), so that
// no large tree is walked.

#pragma once

#include <pv2/base/status.h>

#include <cstddef>

#include "model/execution.h"

namespace pv2 {

/// How many parked members one critical section still looks at, and what the last search has found:
/// a section often asks about several members of one domain.
struct ParkedLooks {
  std::size_t left;
  const Execution* head = nullptr;
  Execution* undo = nullptr;
};

/// The head of the domain that is parked, and with which `member` stands still: the widest one that
/// has failed, or its own. `member` is not parked itself, but is_parked() holds.
[[nodiscard]] Execution& parked_head(Execution& member);

/// The oldest member within the domain of `head`, a parked_head(), whose undo is parked. nullptr:
/// there is none, or it is not among those that `looks` allows. Called under the state mutex.
[[nodiscard]] Execution* parked_undo(Execution& head, ParkedLooks& looks);

/// Why `member`, for which is_parked() holds and which is not quarantined, is parked. Called under
/// the state mutex.
[[nodiscard]] Status why_parked(Execution& member, ParkedLooks& looks);

}  // namespace pv2
