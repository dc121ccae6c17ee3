// SPDX-License-Identifier: Apache-2.0
//
// DescriptorCache: the port to the cache of table descriptors from which the control plane answers
// "which tables are there?". It is volatile and filled from the table directories, so it can be
// lost and refreshed at any time.

#pragma once

#include <pv2/base/status.h>
#include <pv2/engine/completion.h>

#include "pv2/procedures/table.h"

namespace pv2 {

/// Thread-safe. Every call returns at once; its completion is called once, from any thread.
class DescriptorCache {
 public:
  virtual ~DescriptorCache() = default;

  /// Reads the descriptor of `table` from its directory into the cache. If there is none, the cache
  /// forgets the table; that is no failure.
  virtual void refresh(TableName table, Completion<Status> done) = 0;
};

}  // namespace pv2
