// SPDX-License-Identifier: Apache-2.0
//
// Chunks are decoded in any order and visited in the order of the scan.

#include "recovery/chunked_scan.h"

#include <pv2/base/assert.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "pv2/engine/executor_options.h"
#include "pv2/engine/procedure_registry.h"
#include "records/row_keys.h"

namespace pv2 {
namespace {

// Some 0.3 ms of decoding, and still in the cache when it is visited.
constexpr std::size_t kChunkBytes = std::size_t{64} << 10;
// To scan and to visit a procedure takes longer than to decode it, so the thread that scans cannot
// keep many others busy.
constexpr std::size_t kThreadsMax = 4;

// One for each processor that the thread which scans leaves. Without workers the host wants one
// thread.
std::size_t threads_for(const ExecutorOptions& options) {
  return options.workers == 0
             ? 0
             : std::clamp<std::size_t>(std::thread::hardware_concurrency(), 2, kThreadsMax + 1) - 1;
}

}  // namespace

ChunkedScan::ChunkedScan(const ExecutorOptions& options, ProcedureStore& store,
                         std::optional<ProcedureId> end, Visitor visit)
    : options_(options),
      store_(store),
      end_(end),
      visit_(std::move(visit)),
      read_ahead_(2 * threads_for(options)),
      chunk_(kChunkBytes),
      threads_(threads_for(options)) {}

Status ChunkedScan::run() {
  Status status =
      store_.scan(Space::kProcedure, "", [this](const StoredRow& row) { return add(row); });
  if (status.ok()) take_chunk()();
  while (status.ok() && !reading_.empty()) status = visit_oldest();
  return status;
}

// All rows of one procedure are in one chunk.
Status ChunkedScan::add(const StoredRow& row) {
  const ProcedureId id = id_in_key(row.key);  // a malformed key is refused by the chunk's reader
  if (end_ && !(id < *end_)) {
    highest_passed_over_ = id;  // it was submitted meanwhile
    return Status();
  }
  if (id != last_in_chunk_ && chunk_.bytes() >= kChunkBytes) {
    threads_.run(take_chunk());
    if (reading_.size() > read_ahead_) {
      if (Status status = visit_oldest(); !status.ok()) return status;
    }
  }
  last_in_chunk_ = id;
  chunk_.add(row);
  return Status();
}

// Returns the task that reads the chunk, whose result is the last of `reading_`, and begins another
// chunk.
Task ChunkedScan::take_chunk() {
  std::packaged_task<Result<ReadRecords>()> read(
      [&registry = options_.registry, &store = store_, policy = options_.unreadable,
       chunk = std::exchange(chunk_, RowChunk(kChunkBytes))]() -> Result<ReadRecords> {
        RecordReader reader(registry, store, policy);
        Status status = chunk.for_each([&](const StoredRow& row) { return reader.read(row); });
        if (status.ok()) status = reader.finish();
        if (!status.ok()) return status;
        return std::move(reader).take();
      });
  reading_.push_back(read.get_future());
  return Task(std::move(read));
}

Status ChunkedScan::visit_oldest() {
  PV2_ASSERT(!reading_.empty(), "a chunk that is visited is being read");
  std::future<Result<ReadRecords>>& oldest = reading_.front();
  while (oldest.wait_for(std::chrono::seconds(0)) != std::future_status::ready && threads_.help()) {
  }
  Result<ReadRecords> read = oldest.get();
  reading_.pop_front();
  return read.ok() ? visit_(*std::move(read)) : read.status();
}

}  // namespace pv2
