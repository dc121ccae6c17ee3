// SPDX-License-Identifier: Apache-2.0
//
// ChunkedScan: reads the rows of all live procedures. One thread scans the store and cuts the rows
// into chunks; other threads decode the chunks, side by side; the first thread visits what they
// read, in order of id. Where it would have to wait, it decodes what no other thread has begun. A
// failed read or visit ends the scan.
//
//     store --rows--> RowChunk --RecordReader, side by side--> ReadRecords --in order--> visitor

#pragma once

#include <pv2/store/procedure_store.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <optional>

#include "recovery/decoders.h"
#include "recovery/record_reader.h"
#include "recovery/row_chunk.h"

namespace pv2 {

struct EngineCore;

/// Used once. Owned by one thread. Its destructor waits for the threads that still read.
class ChunkedScan {
 public:
  /// Called on the thread of run().
  using Visitor = std::function<Status(ReadRecords)>;

  /// `core` must outlive the scan, which passes over procedures with ids from `end` on.
  ChunkedScan(const EngineCore& core, std::optional<ProcedureId> end, Visitor visit);

  /// Returns after the last visit, or with the first failure.
  Status run();
  /// Of the ids that it has passed over; not valid if there were none.
  [[nodiscard]] ProcedureId highest_passed_over() const noexcept { return highest_passed_over_; }

 private:
  Status add(const StoredRow& row);
  [[nodiscard]] Task take_chunk();
  Status visit_oldest();

  const EngineCore& core_;
  const std::optional<ProcedureId> end_;
  const Visitor visit_;
  // How many chunks may be cut off and not visited; one more while the oldest is visited.
  const std::size_t read_ahead_;
  RowChunk chunk_;  // being filled
  ProcedureId last_in_chunk_;
  ProcedureId highest_passed_over_;
  std::deque<std::future<Result<ReadRecords>>> reading_;  // oldest first
  Decoders decoders_;  // last, because their tasks use the members above
};

}  // namespace pv2
