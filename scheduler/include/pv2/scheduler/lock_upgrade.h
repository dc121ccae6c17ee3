// SPDX-License-Identifier: Apache-2.0
//
// check_no_upgrade(): finds the one kind of lock set that can never be granted: that of an entry
// that asks exclusively for a key that an ancestor only shares. The ancestor ends after its
// descendant, so the descendant would wait for ever; pv2 never upgrades a lock silently, it refuses
// the request with a message instead. The function reads constant data only and takes no lock.

#pragma once

#include <pv2/base/status.h>

#include "pv2/scheduler/scheduler_entry.h"

namespace pv2 {

/// OK, or kInvalidArgument naming the key and the ancestor. Call it before a child's record is
/// written. Ancestors that hold their locks per step or per visit do not count: they give them back
/// while they wait for children, and cover nothing. The scheduler knows the other ancestors. May be
/// called concurrently.
Status check_no_upgrade(const SchedulerEntry& entry);

}  // namespace pv2
