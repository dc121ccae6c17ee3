// SPDX-License-Identifier: Apache-2.0
//
// Three kinds of threads work at once: one scans, some decode, one visits. Without workers the host
// wants one thread, which does all of it, chunk by chunk.

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

// Decoded, or being decoded, while one waits for room and one is being visited.
std::size_t chunks_ahead() { return std::max(2U, std::thread::hardware_concurrency()); }

// Calls `end` when a scope is left, in whatever way.
template <class End>
struct AtEnd {
  End end;
  ~AtEnd() { end(); }
};
template <class End>
AtEnd(End) -> AtEnd<End>;

}  // namespace

ChunkedScan::ChunkedScan(const ExecutorOptions& options, ProcedureStore& store, Visitor visit)
    : options_(options),
      store_(store),
      visit_(std::move(visit)),
      threads_(options.workers == 0 ? Threads::kOne : Threads::kMany),
      queue_(chunks_ahead()),
      chunk_(kChunkBytes) {}

Status ChunkedScan::run() {
  if (threads_ == Threads::kOne) return scan();
  std::future<Status> scanning;
  try {
    scanning = std::async(std::launch::async, [this] {
      const AtEnd end{[this] { queue_.end(); }};
      return scan();
    });
  } catch (const std::system_error&) {  // the machine has no thread left
    threads_ = Threads::kOne;
    return scan();
  }
  const Status visited = visit_all();
  const Status scanned = scanning.get();
  return visited.ok() ? scanned : visited;
}

Status ChunkedScan::visit_all() {
  const AtEnd end{[this] { queue_.abandon(); }};  // else the thread that scans waits for room
  while (auto chunk = queue_.take()) {
    if (Status status = visit(*std::move(chunk)); !status.ok()) return status;
  }
  return Status();
}

Status ChunkedScan::visit(ChunkQueue::Chunk chunk) {
  Result<ReadRecords> read = chunk.get();
  return read.ok() ? visit_(*std::move(read)) : read.status();
}

Status ChunkedScan::scan() {
  Status status =
      store_.scan(Space::kProcedure, "", [this](const StoredRow& row) { return add(row); });
  return status.ok() ? hand_over_chunk() : status;
}

// All rows of one procedure are in one chunk.
Status ChunkedScan::add(const StoredRow& row) {
  const ProcedureId id = id_in_key(row.key);  // a malformed key is refused by the chunk's reader
  if (id != last_in_chunk_ && chunk_.bytes() >= kChunkBytes) {
    if (Status status = hand_over_chunk(); !status.ok()) return status;
  }
  last_in_chunk_ = id;
  chunk_.add(row);
  return Status();
}

Status ChunkedScan::hand_over_chunk() {
  if (threads_ == Threads::kOne) return visit(read_chunk());
  const bool goes_on = queue_.put(read_chunk());
  return goes_on ? Status() : Status(StatusCode::kAborted, "a visit has failed");
}

ChunkQueue::Chunk ChunkedScan::read_chunk() {
  const auto chunk = std::make_shared<RowChunk>(std::exchange(chunk_, RowChunk(kChunkBytes)));
  const auto read = [&registry = options_.registry, &store = store_, policy = options_.unreadable,
                     chunk]() -> Result<ReadRecords> {
    RecordReader reader(registry, store, policy);
    Status status = chunk->for_each([&](const StoredRow& row) { return reader.read(row); });
    if (status.ok()) status = reader.finish();
    if (!status.ok()) return status;
    return std::move(reader).take();
  };
  const bool is_alone = threads_ == Threads::kOne;
  try {
    return std::async(is_alone ? std::launch::deferred : std::launch::async, read);
  } catch (const std::system_error&) {  // no thread is left: the one that visits decodes
    return std::async(std::launch::deferred, read);
  }
}

}  // namespace pv2
