// SPDX-License-Identifier: Apache-2.0
//
// Committer: see the header for the picture. The interesting lines are those about waking: a thread
// is signalled only if it sleeps, once, and outside the lock.

#include "committer.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "pv2/base/assert.h"
#include "pv2/base/thread.h"

namespace pv2 {
namespace {

// write_queued() leaves so many requests to its caller. For more it wakes the store's own thread:
// that one then writes while the caller works. Measured (decision 32).
constexpr std::size_t kFewRequests = 64;

// Not the id of the thread: another one may get it as soon as this one has ended.
thread_local const Committer* committer_of_this_thread = nullptr;

}  // namespace

Committer::Committer(std::string store_name, UnitWriter& writer, CommitSink& sink,
                     CommitSequence last, Options options)
    : store_name_(std::move(store_name)),
      writer_(writer),
      sink_(sink),
      options_(options),
      last_sequence_(last) {
  if (options_.thread != Thread::kOwn) return;
  auto thread = start_thread("pv2-committer", "the writer of " + store_name_, [this] { run(); });
  started_ = thread.status();
  if (thread.ok()) thread_ = *std::move(thread);
}

Committer::~Committer() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(queue_mutex_);
    dropped_.store(true, std::memory_order_relaxed);
    state_ = State::kClosed;
    queue_ = CommitList();
  }
  wake_.notify_one();
  thread_.join();
}

CommitAnswer Committer::commit(CommitRequest& request) {
  bool wake = false;
  {
    MutexLock lock(queue_mutex_);
    if (state_ != State::kOpen) {
      refuse(request);
      return CommitAnswer::kDurable;
    }
    stamp(request, last_sequence_, queued_too_large_);
    queue_.push_back(request);
    wake = claim_sleeper();
  }
  if (wake) wake_.notify_one();
  return CommitAnswer::kQueued;
}

CommitAnswer Committer::commit_all(CommitList& requests) { return enqueue(requests, Wake::kYes); }
CommitAnswer Committer::queue_all(CommitList& requests) { return enqueue(requests, Wake::kNo); }

CommitAnswer Committer::enqueue(CommitList& requests, Wake wake) {
  bool claimed = false;
  {
    MutexLock lock(queue_mutex_);
    if (state_ != State::kOpen) {
      requests.for_each([this](CommitRequest& request) { refuse(request); });
      return CommitAnswer::kDurable;
    }
    if (requests.empty()) return CommitAnswer::kQueued;
    CommitSequence last = last_sequence_;
    bool too_large = queued_too_large_;
    requests.for_each([&](CommitRequest& request) { stamp(request, last, too_large); });
    last_sequence_ = last;
    queued_too_large_ = too_large;
    queue_.splice_back(std::move(requests));
    claimed = wake == Wake::kYes && claim_sleeper();
  }
  if (claimed) wake_.notify_one();
  return CommitAnswer::kQueued;
}

// Whether the caller has to signal the thread. While another one writes there is no need: it looks
// at the queue when it has written.
bool Committer::claim_sleeper() { return !lent_ && std::exchange(sleeping_, false); }

void Committer::wake_writer() {
  bool wake = false;
  {
    MutexLock lock(queue_mutex_);
    wake = !queue_.empty() && claim_sleeper();
  }
  if (wake) wake_.notify_one();
}

// The thread sleeps on while this one writes.
Written Committer::write_queued() {
  CommitList taken;
  {
    MutexLock lock(queue_mutex_);
    if (!sleeping_ || lent_ || queue_.empty() || state_ != State::kOpen) return Written::kNothing;
    lent_ = true;
    borrower_ = std::this_thread::get_id();
    look_at_sizes_ = queued_too_large_;
    taken = std::move(queue_);
  }
  write_and_publish(std::move(taken), Thread::kCaller);
  MutexLock lock(queue_mutex_);
  lent_ = false;
  if (queue_.empty() && state_ == State::kOpen) return Written::kAll;
  if (queue_.size() <= kFewRequests && state_ == State::kOpen) return Written::kSome;
  // Under the mutex: a thread that waits in close() for this one may then destroy the committer.
  if (claim_sleeper() || state_ != State::kOpen) wake_.notify_one();
  return Written::kAll;
}

// The size is checked here, where the request is in the processor's cache, and not when it is
// written.
void Committer::stamp(CommitRequest& request, CommitSequence& last,
                      bool& too_large) const noexcept {
  request.sequence.value = ++last.value;
  if (!request.status.ok()) request.status = Status();
  too_large = too_large || !options_.limits.allow(request.batch);
}

void Committer::refuse(CommitRequest& request) const {
  request.status = Status(StatusCode::kStopping,
                          fmt::format("{} is closed: nothing is committed any more", store_name_));
}

std::size_t Committer::queued() const {
  MutexLock lock(queue_mutex_);
  return queue_.size();
}

void Committer::run() {
  committer_of_this_thread = this;
  for (CommitList taken = wait_for_requests(); !taken.empty(); taken = wait_for_requests()) {
    write_and_publish(std::move(taken), Thread::kOwn);
  }
}

// Looks again and again: the requests that it waits for come sooner than a thread wakes up. On busy
// processors a look may take a time slice, and a wait that long gains nothing, whatever has come.
void Committer::gather() {
  const std::size_t before = queued();
  const std::size_t wanted = gathering_.wanted(before);
  if (wanted <= before) return;
  const auto began = std::chrono::steady_clock::now();
  std::chrono::steady_clock::duration passed{};
  std::size_t now = before;
  while (now < wanted && passed < Gathering::kPatience) {
    std::this_thread::yield();
    now = queued();
    passed = std::chrono::steady_clock::now() - began;
  }
  const bool most_came = 2 * (now - before) >= wanted - before;
  gathering_.waited(most_came && passed < 2 * Gathering::kPatience);
}

CommitList Committer::wait_for_requests() {
  gather();
  MutexLock lock(queue_mutex_);
  while (lent_ || (queue_.empty() && state_ == State::kOpen)) {
    sleeping_ = true;
    wake_.wait(queue_mutex_);
  }
  sleeping_ = false;
  look_at_sizes_ = queued_too_large_;
  return std::move(queue_);
}

bool Committer::pump(std::size_t requests_max) {
  if (options_.thread == Thread::kOwn) return false;
  CommitList taken;
  {
    MutexLock lock(queue_mutex_);
    if (lent_) return false;  // the sink, which a writer is in, runs the engine
    look_at_sizes_ = queued_too_large_;
    if (requests_max >= queue_.size()) {
      taken = std::move(queue_);
    } else {
      while (taken.size() < requests_max) taken.push_back(*queue_.pop_front());
    }
    lent_ = !taken.empty();
    borrower_ = std::this_thread::get_id();
  }
  if (taken.empty()) return false;
  write_and_publish(std::move(taken), Thread::kCaller);
  MutexLock lock(queue_mutex_);
  lent_ = false;
  return true;
}

// A thread that has no memory for this ends the process, whichever it is: if a thread that borrows
// the place of the committer's could leave it by an exception, nothing would be written any more.
void Committer::write_and_publish(CommitList taken, Thread by) noexcept {
  while (!taken.empty()) {
    CommitList unit = cut_unit(taken);
    gathering_.published(unit.size());
    if (failure_.ok()) {
      failure_ = write(unit);
      if (!failure_.ok()) writer_.writing_ended();
    }
    if (!failure_.ok())
      unit.for_each([this](CommitRequest& request) { request.status = failure_; });
    if (dropped_.load(std::memory_order_relaxed)) return;
    if (by == Thread::kOwn && failure_.ok() && more_follows(taken)) {
      sink_.on_committed_more_follows(std::move(unit));
    } else {
      sink_.on_committed(std::move(unit));
    }
  }
}

// Whether the committer's thread, which has yet to write `taken`, writes again without sleeping.
// Nobody but that thread takes what is queued while it is awake.
bool Committer::more_follows(const CommitList& taken) const {
  return !taken.empty() || queued() != 0;
}

// Usually everything fits and the list is passed on untouched.
CommitList Committer::cut_unit(CommitList& taken) const {
  const StoreLimits& size = options_.unit_size;
  if (taken.operations() <= size.batch_operations && taken.bytes() <= size.batch_bytes) {
    return std::move(taken);
  }
  CommitList unit;
  do {
    unit.push_back(*taken.pop_front());
  } while (!taken.empty() &&
           unit.operations() + taken.front()->batch.operations() <= size.batch_operations &&
           unit.bytes() + taken.front()->batch.bytes() <= size.batch_bytes);
  return unit;
}

Status Committer::write(const CommitList& unit) {
  Status status;
  if (look_at_sizes_) {
    unit.for_each([&](const CommitRequest& request) {
      if (status.ok() && !options_.limits.allow(request.batch)) status = too_large(request);
    });
  }
  return status.ok() ? writer_.write(unit) : status;
}

Status Committer::too_large(const CommitRequest& request) const {
  return Status(StatusCode::kInvalidArgument,
                fmt::format("commit {} to {} is too large: {} operations and {} bytes, the limits "
                            "are {} and {}",
                            request.sequence.value, store_name_, request.batch.operations(),
                            request.batch.bytes(), options_.limits.batch_operations,
                            options_.limits.batch_bytes));
}

void Committer::close() noexcept {
  PV2_ASSERT(committer_of_this_thread != this, "a store is not closed from within its sink");
  {
    MutexLock lock(queue_mutex_);
    PV2_ASSERT(!lent_ || borrower_ != std::this_thread::get_id(),
               "a store is not closed from within its sink");
    if (state_ != State::kOpen) {
      while (state_ != State::kClosed) closed_.wait(queue_mutex_);
      return;
    }
    state_ = State::kDraining;
  }
  wake_.notify_one();
  if (thread_.joinable()) {
    thread_.join();
  } else {
    pump();
  }
  {
    MutexLock lock(queue_mutex_);
    state_ = State::kClosed;
  }
  closed_.notify_all();
}

}  // namespace pv2
