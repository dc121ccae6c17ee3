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

#include "core/engine_core.h"
#include "core/task_pool.h"
#include "pv2/engine/executor_options.h"
#include "pv2/engine/procedure_registry.h"
#include "records/row_keys.h"

namespace pv2 {
namespace {

// One thread decodes the 200 small procedures of such a chunk in less than a millisecond. So no
// thread waits long for another one.
constexpr std::size_t kChunkBytes = std::size_t{64} << 10;
// A chunk ends with the row that fills it, so most go a little beyond that.
constexpr std::size_t kChunkRoom = kChunkBytes + kChunkBytes / 4;

// One for each processor that the thread which scans leaves. Without workers the host wants one
// thread.
std::size_t decoders_for(const ExecutorOptions& options) {
  return options.workers == 0 ? 0 : std::max(std::thread::hardware_concurrency(), 1U) - 1;
}

}  // namespace

ChunkedScan::ChunkedScan(const EngineCore& core, std::optional<ProcedureId> end, Visitor visit)
    : core_(core),
      end_(end),
      visit_(std::move(visit)),
      read_ahead_(2 * decoders_for(core.options) + 2),
      chunk_(kChunkRoom),
      decoders_(decoders_for(core.options)) {}

Status ChunkedScan::run() {
  Status status =
      core_.store.scan(Space::kProcedure, "", [this](const StoredRow& row) { return add(row); });
  if (status.ok()) {
    Task read_last = take_chunk();
    read_last();
  }
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
    decoders_.run(take_chunk());
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
      [&core = core_,
       chunk = std::exchange(chunk_, RowChunk(kChunkRoom))]() -> Result<ReadRecords> {
        const EngineThread mark(&core);  // it makes objects of the host
        RecordReader reader(core.options.registry, core.store, core.options.unreadable);
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
  while (oldest.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    if (!decoders_.help()) break;
  }
  Result<ReadRecords> read = oldest.get();
  reading_.pop_front();
  return read.ok() ? visit_(*std::move(read)) : read.status();
}

}  // namespace pv2
