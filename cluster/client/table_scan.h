// SPDX-License-Identifier: Apache-2.0
//
// TableScan: a page of rows of a table, over as many regions as it takes. Each region is asked from
// the row where the answer before ended, so a region that moves or is split meanwhile neither
// repeats a row nor leaves one out.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "client/region_call.h"
#include "pv2/cluster/cell.h"

namespace pv2::cluster {

/// Used on the loop only. It keeps itself until the page is full or at its end.
class TableScan : public std::enable_shared_from_this<TableScan> {
 public:
  using Done = std::function<void(Result<ScanPage>)>;

  static void begin(RegionCallGround ground, TableName table, Scan scan, Duration timeout,
                    Done done);

 private:
  TableScan(RegionCallGround ground, TableName table, Scan scan, SteadyTime deadline, Done done)
      : ground_(ground),
        table_(std::move(table)),
        rest_(std::move(scan)),
        deadline_(deadline),
        done_(std::move(done)) {}

  void ask();
  void take(const CallOutcome& outcome, const RegionInfo& region);
  /// Takes the cells over; false: the page is full.
  bool add(ScanPage& page);
  void finish() { done_(std::move(page_)); }

  const RegionCallGround ground_;
  const TableName table_;
  Scan rest_;
  const SteadyTime deadline_;
  const Done done_;
  ScanPage page_;
  std::uint64_t bytes_ = 0;  ///< In it.
};

}  // namespace pv2::cluster
