// SPDX-License-Identifier: Apache-2.0
//
// One round of work first has a file ready and then checkpoints a segment: the log waits for the
// first, and for the second only if there is no other way.

#include "log/checkpointer.h"

#include <utility>

#include "pv2/base/assert.h"
#include "pv2/base/thread.h"

namespace pv2 {

Checkpointer::Checkpointer(Overlay& overlay, SegmentPool& pool, CheckpointWriter& writer,
                           Thread thread)
    : overlay_(overlay), pool_(pool), writer_(writer), kind_(thread) {}

Checkpointer::~Checkpointer() { stop(); }

Status Checkpointer::start() {
  if (kind_ == Thread::kCaller) return Status();
  auto thread = start_thread("pv2-checkpoint", "the checkpoints of a store", [this] { run(); });
  Status started = thread.status();
  if (started.ok()) thread_ = *std::move(thread);
  return started;
}

void Checkpointer::stop_soon() noexcept {
  {
    MutexLock lock(work_mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
}

void Checkpointer::stop() noexcept {
  stop_soon();
  if (thread_.joinable()) thread_.join();
}

void Checkpointer::run() {
  let_others_go_first();
  for (;;) {
    {
      MutexLock lock(work_mutex_);
      while (!stopping_ && !has_work()) wake_.wait(work_mutex_);
      if (stopping_) return;
    }
    round();
  }
}

bool Checkpointer::has_work() const {
  return failure_.ok() && (prepare_ || index_ || waiting_ || sealed_.size() > kKept);
}

void Checkpointer::answer(Status no_file) {
  no_file_ = std::move(no_file);
  waiting_ = false;
  answered_.notify_one();
}

void Checkpointer::round() {
  bool index_due = false;
  bool checkpoint_due = false;
  const Status prepared = pool_.prepare();
  {
    MutexLock lock(work_mutex_);
    prepare_ = false;
    index_due = std::exchange(index_, false);
    if (waiting_ && pool_.has_free()) answer(Status());
    checkpoint_due = sealed_.size() > kKept || (waiting_ && !sealed_.empty());
    if (waiting_ && !checkpoint_due) answer(prepared);
  }
  if (index_due) overlay_.index_all();
  if (!checkpoint_due) return;
  const Status done = checkpoint_oldest();
  MutexLock lock(work_mutex_);
  if (!done.ok()) {
    failure_ = done;
    has_failed_.store(true, std::memory_order_relaxed);
  }
  if (waiting_) answer(done);
}

Status Checkpointer::checkpoint_oldest() {
  const Overlay::Checkpoint checkpoint = overlay_.begin_checkpoint();
  Status status = writer_.write_checkpoint(checkpoint, SegmentNumber{checkpoint.segment.value + 1});
  if (!status.ok()) return status;
  overlay_.end_checkpoint(checkpoint);
  std::optional<SegmentPool::File> file;
  std::optional<SegmentPool::File> before;
  {
    MutexLock lock(work_mutex_);
    file = std::move(sealed_.front());
    sealed_.pop_front();
    before = std::exchange(kept_, std::nullopt);
    if (checkpoint.needs != checkpoint.last) kept_ = std::exchange(file, std::nullopt);
  }
  if (before) pool_.give_back(*std::move(before));
  if (file) pool_.give_back(*std::move(file));
  return status;
}

void Checkpointer::seal(SegmentPool::File file) {
  bool due = false;
  {
    MutexLock lock(work_mutex_);
    sealed_.push_back(std::move(file));
    due = has_work();
  }
  if (!due) return;
  if (kind_ == Thread::kCaller) return round();
  wake_.notify_one();
}

Result<SegmentPool::File> Checkpointer::next_file() {
  for (;;) {
    if (auto file = pool_.take()) return *std::move(file);
    {
      MutexLock lock(work_mutex_);
      if (!failure_.ok()) return failure_;
      if (!no_file_.ok()) return std::exchange(no_file_, Status());
      waiting_ = true;
      if (kind_ == Thread::kOwn) {
        wake_.notify_one();
        while (waiting_) answered_.wait(work_mutex_);
        continue;
      }
    }
    round();
  }
}

void Checkpointer::prepare_soon() {
  if (kind_ == Thread::kCaller) return;  // next_file() does it
  {
    MutexLock lock(work_mutex_);
    prepare_ = true;
  }
  wake_.notify_one();
}

void Checkpointer::index_soon() {
  if (kind_ == Thread::kCaller) return;  // the reader does it
  {
    MutexLock lock(work_mutex_);
    index_ = true;
  }
  wake_.notify_one();
}

bool Checkpointer::is_awaited() const {
  MutexLock lock(work_mutex_);
  return waiting_;
}

// A commit that is just being written may still succeed: the log has it.
Status Checkpointer::failure() const {
  if (!has_failed_.load(std::memory_order_relaxed)) return Status();
  MutexLock lock(work_mutex_);
  return failure_;
}

}  // namespace pv2
