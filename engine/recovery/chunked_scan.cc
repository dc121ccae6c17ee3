// SPDX-License-Identifier: Apache-2.0
//
// Chunks are decoded in any order and visited in the order of the scan.

#include "recovery/chunked_scan.h"

#include <pv2/base/assert.h>

#include <algorithm>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "pv2/engine/executor_options.h"
#include "pv2/engine/procedure_registry.h"
#include "records/row_keys.h"

namespace pv2 {
namespace {

// 1 MiB: a few milliseconds of decoding, so the time to start a thread does not matter.
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

// Without workers the host wants one thread.
std::size_t chunks_side_by_side(const ExecutorOptions& options) {
  return options.workers == 0 ? 0 : std::max(2U, std::thread::hardware_concurrency());
}

}  // namespace

ChunkedScan::ChunkedScan(const ExecutorOptions& options, ProcedureStore& store,
                         std::optional<ProcedureId> end, Visitor visit)
    : options_(options),
      store_(store),
      end_(end),
      visit_(std::move(visit)),
      side_by_side_(chunks_side_by_side(options)),
      chunk_(kChunkBytes) {}

Status ChunkedScan::run() {
  Status status =
      store_.scan(Space::kProcedure, "", [this](const StoredRow& row) { return add(row); });
  if (status.ok()) read_chunk(std::launch::deferred);
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
    read_chunk(side_by_side_ == 0 ? std::launch::deferred : std::launch::async);
    if (reading_.size() > side_by_side_) {
      if (Status status = visit_oldest(); !status.ok()) return status;
    }
  }
  last_in_chunk_ = id;
  chunk_.add(row);
  return Status();
}

void ChunkedScan::read_chunk(std::launch where) {
  const auto chunk = std::make_shared<RowChunk>(std::exchange(chunk_, RowChunk(kChunkBytes)));
  const auto read = [&registry = options_.registry, &store = store_, policy = options_.unreadable,
                     chunk]() -> Result<ReadRecords> {
    RecordReader reader(registry, store, policy);
    Status status = chunk->for_each([&](const StoredRow& row) { return reader.read(row); });
    if (status.ok()) status = reader.finish();
    if (!status.ok()) return status;
    return std::move(reader).take();
  };
  try {
    reading_.push_back(std::async(where, read));
  } catch (const std::system_error&) {  // the machine has no thread left, so this one decodes
    reading_.push_back(std::async(std::launch::deferred, read));
  }
}

Status ChunkedScan::visit_oldest() {
  PV2_ASSERT(!reading_.empty(), "a chunk that is visited is being read");
  Result<ReadRecords> read = reading_.front().get();
  reading_.pop_front();
  return read.ok() ? visit_(*std::move(read)) : read.status();
}

}  // namespace pv2
