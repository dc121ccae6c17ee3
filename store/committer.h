// SPDX-License-Identifier: Apache-2.0
//
// Committer: the queue in front of a store and the one place that writes to it. It stamps requests
// in the order in which they arrive, takes everything that is queued, has it written as one unit
// (group commit), and hands the unit to the sink with no lock held. There is no timer: a unit is
// what arrived while the previous one was being synced, and what follows from that one if it is
// about to come (Gathering).
//
//     commit() --stamp--> queue --take all--> cut into units --write--> sink
//
// The one that writes is the committer's thread, or, while that sleeps, a thread that has nothing
// else to do (write_queued()). To wake a thread costs as much as a fifth of a sync, so a thread
// that would only sleep until its request is durable writes it itself.
//
// The invariant: whenever a request is queued, the committer's thread is awake or was signalled, or
// another thread is in write_queued(), or a thread has yet to call write_queued() or wake_writer()
// after queue_all() or Written::kSome. So no request is forgotten.
//
// How it fails: the first write that fails ends writing for good. That unit and everything after it
// goes to the sink, in order, with the first failure.

#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>

#include "gathering.h"
#include "pv2/base/mutex.h"
#include "pv2/base/status.h"
#include "pv2/store/commit_request.h"
#include "pv2/store/procedure_store.h"

namespace pv2 {

/// Makes a unit durable, whole or not at all. Called by one thread at a time, and never again after
/// a failure.
class UnitWriter {
 public:
  virtual Status write(const CommitList& unit) = 0;
  /// A unit has failed, in write() or before it: nothing more is written. Called once, before the
  /// sink gets that unit.
  virtual void writing_ended() noexcept {}

 protected:
  ~UnitWriter() = default;
};

/// Thread-safe, except pump(), which one thread calls at a time.
class Committer {
 public:
  enum class Thread {
    kOwn,     ///< A thread of its own writes.
    kCaller,  ///< The caller of pump() writes, or that of write_queued().
  };
  struct Options {
    Thread thread = Thread::kOwn;
    StoreLimits
        limits;  ///< A request above them fails, and with it its unit and everything after it.
    StoreLimits
        unit_size;  ///< A unit is cut before it exceeds this; one request may exceed it alone.
  };

  /// Stamps requests with the sequences after `last`. `store_name` is for messages.
  Committer(std::string store_name, UnitWriter& writer, CommitSink& sink, CommitSequence last,
            Options options);
  /// OK, or why its thread did not start; then it is given no requests, and is destroyed.
  [[nodiscard]] const Status& started() const noexcept { return started_; }
  /// Without close(): what is still queued is dropped, as in a crash, and the sink is not called.
  ~Committer();
  Committer(const Committer&) = delete;
  Committer& operator=(const Committer&) = delete;

  CommitAnswer commit(CommitRequest& request) PV2_EXCLUDES(queue_mutex_);
  CommitAnswer commit_all(CommitList& requests) PV2_EXCLUDES(queue_mutex_);

  /// As ProcedureStore says.
  CommitAnswer queue_all(CommitList& requests) PV2_EXCLUDES(queue_mutex_);
  Written write_queued() PV2_EXCLUDES(queue_mutex_);
  void wake_writer() PV2_EXCLUDES(queue_mutex_);

  /// Writes at most the first `requests_max` queued requests. Returns false if nothing was queued,
  /// or if the committer has its own thread.
  bool pump(std::size_t requests_max = SIZE_MAX) PV2_EXCLUDES(queue_mutex_);

  /// Refuses new requests, writes what is queued, stops the thread. Idempotent; every call returns
  /// only after the end.
  void close() noexcept PV2_EXCLUDES(queue_mutex_);

  [[nodiscard]] std::size_t queued() const PV2_EXCLUDES(queue_mutex_);

 private:
  enum class State { kOpen, kDraining, kClosed };
  enum class Wake { kYes, kNo };

  CommitAnswer enqueue(CommitList& requests, Wake wake) PV2_EXCLUDES(queue_mutex_);
  [[nodiscard]] bool claim_sleeper() PV2_REQUIRES(queue_mutex_);
  void refuse(CommitRequest& request) const;
  void stamp(CommitRequest& request, CommitSequence& last, bool& too_large) const noexcept;
  [[nodiscard]] Status too_large(const CommitRequest& request) const;
  void run();
  void gather() PV2_EXCLUDES(queue_mutex_);
  CommitList wait_for_requests() PV2_EXCLUDES(queue_mutex_);
  void write_and_publish(CommitList taken, Thread by) noexcept;
  [[nodiscard]] bool more_follows(const CommitList& taken) const PV2_EXCLUDES(queue_mutex_);
  CommitList cut_unit(CommitList& taken) const;
  Status write(const CommitList& unit);

  const std::string store_name_;
  UnitWriter& writer_;
  CommitSink& sink_;
  const Options options_;

  mutable Mutex queue_mutex_;
  CondVar wake_;    // for the committer thread
  CondVar closed_;  // for the second and later callers of close()
  CommitList queue_ PV2_GUARDED_BY(queue_mutex_);
  CommitSequence last_sequence_ PV2_GUARDED_BY(queue_mutex_);
  bool sleeping_ PV2_GUARDED_BY(queue_mutex_) = false;  ///< The thread does, and was not signalled.
  /// A thread in write_queued() or pump() writes: `borrower_`.
  bool lent_ PV2_GUARDED_BY(queue_mutex_) = false;
  std::thread::id borrower_ PV2_GUARDED_BY(queue_mutex_);
  State state_ PV2_GUARDED_BY(queue_mutex_) = State::kOpen;
  bool queued_too_large_ PV2_GUARDED_BY(queue_mutex_) = false;  ///< A request ever was.

  std::atomic<bool> dropped_ = false;  // relaxed: the join orders everything else
  // Owned by the writer: the thread, or the caller of pump() or write_queued().
  Status started_;  // constant
  Status failure_;
  bool look_at_sizes_ = false;
  Gathering gathering_;
  std::thread thread_;
};

}  // namespace pv2
