// SPDX-License-Identifier: Apache-2.0
//
// ChunkedScan: reads the rows of all live procedures. One thread scans the store and cuts the rows
// into chunks; other threads decode the chunks, side by side; the thread of run() visits what they
// read, in order of id. A failed read or visit ends the scan.
//
//     store --rows--> RowChunk --RecordReader, side by side--> ReadRecords --in order--> visitor

#pragma once

#include <pv2/store/procedure_store.h>

#include <cstddef>
#include <functional>
#include <future>

#include "recovery/chunk_queue.h"
#include "recovery/record_reader.h"
#include "recovery/row_chunk.h"

namespace pv2 {

struct ExecutorOptions;

/// Used once. Owned by one thread.
class ChunkedScan {
 public:
  /// Called on the thread of run().
  using Visitor = std::function<Status(ReadRecords)>;

  /// `options` and `store` must outlive the scan.
  ChunkedScan(const ExecutorOptions& options, ProcedureStore& store, Visitor visit);

  /// Returns after the last visit, or with the first failure.
  Status run();

 private:
  enum class Threads { kOne, kMany };

  Status visit_all();
  // On the thread that scans, which with Threads::kOne visits as well.
  Status scan();
  Status add(const StoredRow& row);
  Status hand_over_chunk();
  [[nodiscard]] ChunkQueue::Chunk read_chunk();
  Status visit(ChunkQueue::Chunk chunk);

  const ExecutorOptions& options_;
  ProcedureStore& store_;
  const Visitor visit_;
  Threads threads_;
  ChunkQueue queue_;
  RowChunk chunk_;  // being filled
  ProcedureId last_in_chunk_;
};

}  // namespace pv2
