// SPDX-License-Identifier: Apache-2.0
//
// ChunkedScan: reads the rows of all live procedures. One thread scans the store and cuts the rows
// into chunks; other threads decode the chunks, side by side; the first thread visits what they
// read, in order of id. A failed read or visit ends the scan.
//
//     store --rows--> RowChunk --RecordReader, side by side--> ReadRecords --in order--> visitor

#pragma once

#include <pv2/store/procedure_store.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <optional>

#include "recovery/load_threads.h"
#include "recovery/record_reader.h"
#include "recovery/row_chunk.h"

namespace pv2 {

struct ExecutorOptions;

/// Used once. Owned by one thread. Its destructor waits for the threads that still read.
class ChunkedScan {
 public:
  /// Called on the thread of run().
  using Visitor = std::function<Status(ReadRecords)>;

  /// `options` and `store` must outlive the scan, which passes over procedures with ids from
  /// `end` on.
  ChunkedScan(const ExecutorOptions& options, ProcedureStore& store, std::optional<ProcedureId> end,
              Visitor visit);

  /// Returns after the last visit, or with the first failure.
  Status run();
  /// Of the ids that it has passed over; not valid if there were none.
  [[nodiscard]] ProcedureId highest_passed_over() const noexcept { return highest_passed_over_; }

 private:
  Status add(const StoredRow& row);
  [[nodiscard]] Task take_chunk();
  Status visit_oldest();

  const ExecutorOptions& options_;
  ProcedureStore& store_;
  const std::optional<ProcedureId> end_;
  const Visitor visit_;
  const std::size_t read_ahead_;  // chunks that may be decoded, or being decoded, and not visited
  RowChunk chunk_;                // being filled
  ProcedureId last_in_chunk_;
  ProcedureId highest_passed_over_;
  std::deque<std::future<Result<ReadRecords>>> reading_;  // oldest first
  LoadThreads threads_;  // last, because what they do uses the members above
};

}  // namespace pv2
