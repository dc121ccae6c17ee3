// SPDX-License-Identifier: Apache-2.0
//
// ProcedureStore: where an executor keeps its rows. The contract is asynchronous: commit() queues a
// batch and returns; one sync makes everything durable that was queued meanwhile (group commit);
// the finished requests come back in commit order, in one list per sync. A store keeps rows and
// does not know what a procedure is.
//
// How it fails: loudly and for good. After the first commit that fails, no later one is written in
// this run; every later request comes back with the failure, in order. Threads of the store finish
// what they have begun. What is on disk stays consistent, and a new process goes on from it.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pv2/store/commit_request.h"

namespace pv2 {

/// What commit() did with a request.
enum class CommitAnswer {
  kQueued,   ///< The sink gets it later, exactly once.
  kDurable,  ///< It is as durable as this store makes anything; no callback follows. `status` is
             ///< OK, or after close() kStopping.
};

/// Receives finished requests. Called by one thread at a time, which is one of the store's or one
/// in pump() or write_queued(); never under a lock of the store. It may call commit() again, which
/// only queues.
class CommitSink {
 public:
  virtual ~CommitSink() = default;
  /// `finished`: every request of one sync, in commit order, each with its status.
  virtual void on_committed(CommitList finished) noexcept = 0;
  /// Like on_committed(), but said by the store's own thread when it has more to write: after that
  /// write it calls again, unless the store is destroyed without close(). So a sink may leave
  /// `finished` to another thread meanwhile, and see to it in the next call at the latest.
  virtual void on_committed_more_follows(CommitList finished) noexcept {
    on_committed(std::move(finished));
  }
};

/// One row as it was read. The views are valid during the call only.
struct StoredRow {
  Space space = Space::kEngine;
  std::string_view key;
  std::string_view value;
  CommitSequence sequence;  ///< Of the batch that wrote this value.
};

/// Called for each row; a failure ends the scan, which returns it.
using RowVisitor = std::function<Status(const StoredRow&)>;

/// What one batch may hold.
struct StoreLimits {
  std::size_t batch_operations = 0;
  std::size_t batch_bytes = 0;

  /// Whether a store with these limits takes `batch`.
  [[nodiscard]] bool allow(const RowBatch& batch) const noexcept {
    return batch.operations() <= batch_operations && batch.bytes() <= batch_bytes;
  }
};

/// What ProcedureStore::write_queued() did.
enum class Written : std::uint8_t {
  kNothing,  ///< It wrote nothing; the store sees to what is queued.
  kAll,      ///< It wrote; the store sees to what is queued now, if anything is.
  kSome,     ///< It wrote; a little is queued now, for which the caller does as after queue_all().
};

/// Life: construct (touches nothing) -> recover_lease -> scan, get -> commit, scan, get -> close.
class ProcedureStore {
 public:
  virtual ~ProcedureStore() = default;

  /// "leveldb at orders.db": for messages.
  [[nodiscard]] virtual std::string name() const = 0;

  /// Becomes the only owner, or says who owns it (kBusy). Opens or creates what is on disk; what
  /// exists is not changed before the first commit. `sink` is called from now until close() has
  /// returned. Not thread-safe; called once.
  virtual Status recover_lease(CommitSink& sink) = 0;

  /// Takes `request` until it is durable or has failed. Thread-safe. Never blocks on the disk.
  /// Requests become durable in the order in which they were stamped, and a request is durable only
  /// if every earlier one is.
  virtual CommitAnswer commit(CommitRequest& request) = 0;

  /// Like commit() for several requests, in order, with one wake of the committer. Takes the whole
  /// list; either all requests are kQueued, or all are kDurable (and then stay in `requests`).
  virtual CommitAnswer commit_all(CommitList& requests) = 0;

  /// Like commit_all(), but wakes nobody. The caller calls write_queued() or wake_writer() soon, on
  /// the same thread, and neither blocks nor runs code of the host before that. For a thread that
  /// would only sleep until these requests are durable. A store may answer as commit_all() does.
  virtual CommitAnswer queue_all(CommitList& requests) { return commit_all(requests); }

  /// Makes what is queued durable on the calling thread and calls the sink, if the store's own
  /// thread sleeps and no other thread is in here: usually one write and one sync. Thread-safe; not
  /// called by the sink.
  virtual Written write_queued() { return Written::kNothing; }

  /// The store sees to what is queued. Thread-safe; does not block.
  virtual void wake_writer() {}

  /// The value of a row as of the last durable commit; nullopt when there is none. Thread-safe. May
  /// read the disk. A store may end the process if there is no memory for a read.
  virtual Result<std::optional<std::string>> get(Space space, std::string_view key) = 0;

  /// Visits the rows of one space whose keys begin with `prefix`, in key order, as of some durable
  /// commit. Thread-safe; `visit` may call get() and scan().
  virtual Status scan(Space space, std::string_view prefix, const RowVisitor& visit) = 0;

  /// Whether rows in Space::kProcedure, kResult, kNonce and kEngine survive (false for Noop: then
  /// the engine answers everything from memory).
  [[nodiscard]] virtual bool keeps_records() const noexcept = 0;

  /// Always the same: the engine asks once.
  [[nodiscard]] virtual StoreLimits limits() const noexcept = 0;

  /// For a store without a thread of its own (tests, simulations): makes what is queued durable on
  /// the calling thread and calls the sink. Returns whether it did anything; in the sink it does
  /// nothing. A store with a committer thread returns false (see write_queued()).
  virtual bool pump() { return false; }

  /// Drains what is queued, then gives up ownership. The sink is not called any more once close()
  /// has returned. Idempotent. Several threads may close a store that has a committer thread: each
  /// call returns only after the end. One that is pumped is closed by the thread that pumps it. A
  /// later commit fails with kStopping (through its status; the answer is kDurable).
  virtual void close() noexcept = 0;
};

}  // namespace pv2
