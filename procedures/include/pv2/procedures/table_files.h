// SPDX-License-Identifier: Apache-2.0
//
// TableFiles: the port to the table directories: one folder per table with its descriptor and one
// folder per region. Writing them takes many steps, and a crash may leave any part of them; writing
// again completes them.
//
// How it fails: kUnavailable or kIoError may pass. A half-written directory is not damage.

#pragma once

#include <pv2/base/status.h>
#include <pv2/engine/completion.h>

#include <string>
#include <vector>

#include "pv2/procedures/region.h"
#include "pv2/procedures/table.h"

namespace pv2 {

/// Thread-safe. Every call returns at once; its completion is called once, from any thread.
class TableFiles {
 public:
  virtual ~TableFiles() = default;

  /// Makes the directory of the table hold exactly this, durably: what is missing is made, what is
  /// right is left alone, what does not belong there is removed. The caller holds the table's lock.
  virtual void write_layout(TableDescriptor descriptor, std::vector<RegionInfo> regions,
                            std::string effect_key, Completion<Status> done) = 0;
};

}  // namespace pv2
