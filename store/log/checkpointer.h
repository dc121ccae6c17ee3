// SPDX-License-Identifier: Apache-2.0
//
// Checkpointer: moves what full segments hold into the database, oldest first, so that their files
// can be used again, and has the next file ready before it is needed.
//
// The newest full segment waits until there is another one: most of its rows are replaced or
// deleted by then, and never reach the database. If no file is free and none can be made, it does
// not wait, and the log does: that is the limit on the memory and the disk that the log takes.
//
// The file of a segment whose rows are not all in the database, because the next one replaces them,
// is used again only when the next one is in the database too: if that one is damaged, a salvage
// needs both.
//
// How it fails: a checkpoint that fails ends the log for this run. A file that cannot be made is no
// failure as long as another one becomes free.

#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <optional>
#include <thread>

#include "log/overlay.h"
#include "log/segment_pool.h"
#include "pv2/base/mutex.h"
#include "pv2/base/status.h"

namespace pv2 {

/// Writes rows into the database. Called by one thread at a time.
class CheckpointWriter {
 public:
  /// Makes the rows of `checkpoint` durable in the database, and with them that the log goes on
  /// with segment `next`.
  virtual Status write_checkpoint(const Overlay::Checkpoint& checkpoint, SegmentNumber next) = 0;

 protected:
  ~CheckpointWriter() = default;
};

/// seal(), next_file(), prepare_soon() and index_soon() are called by the thread that writes the
/// log.
class Checkpointer {
 public:
  enum class Thread {
    kOwn,     ///< A thread of its own does the work.
    kCaller,  ///< seal() and next_file() do what cannot wait.
  };
  Checkpointer(Overlay& overlay, SegmentPool& pool, CheckpointWriter& writer, Thread thread);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  /// Starts its thread, if it has one.
  Status start();
  /// Its thread finishes what it is doing and begins nothing more. Does not wait for that.
  void stop_soon() noexcept PV2_EXCLUDES(work_mutex_);
  /// stop_soon(), and waits until the thread has ended. Idempotent.
  void stop() noexcept PV2_EXCLUDES(work_mutex_);

  /// The newest segment of the overlay, which lies in `file`, does not grow any more.
  void seal(SegmentPool::File file) PV2_EXCLUDES(work_mutex_);
  /// A file for the next segment; waits until one is free.
  Result<SegmentPool::File> next_file() PV2_EXCLUDES(work_mutex_);
  /// Soon a file will be needed.
  void prepare_soon() PV2_EXCLUDES(work_mutex_);
  /// The newest segment has grown a lot since its rows were last looked for: the next read would
  /// have to index all that.
  void index_soon() PV2_EXCLUDES(work_mutex_);
  /// Whether next_file() waits for the checkpointer's thread right now. Any thread may ask.
  [[nodiscard]] bool is_awaited() const PV2_EXCLUDES(work_mutex_);
  /// The failure of a checkpoint, or OK.
  [[nodiscard]] Status failure() const PV2_EXCLUDES(work_mutex_);

 private:
  // How many full segments are kept for their rows to die.
  static constexpr std::size_t kKept = 1;

  void run() PV2_EXCLUDES(work_mutex_);
  void round() PV2_EXCLUDES(work_mutex_);
  Status checkpoint_oldest() PV2_EXCLUDES(work_mutex_);
  [[nodiscard]] bool has_work() const PV2_REQUIRES(work_mutex_);
  void answer(Status no_file) PV2_REQUIRES(work_mutex_);

  Overlay& overlay_;
  SegmentPool& pool_;
  CheckpointWriter& writer_;
  const Thread kind_;

  mutable Mutex work_mutex_;
  CondVar wake_;                                                       // for its thread
  CondVar answered_;                                                   // for the log's
  std::deque<SegmentPool::File> sealed_ PV2_GUARDED_BY(work_mutex_);   // oldest first
  std::optional<SegmentPool::File> kept_ PV2_GUARDED_BY(work_mutex_);  // see above
  bool prepare_ PV2_GUARDED_BY(work_mutex_) = false;
  bool index_ PV2_GUARDED_BY(work_mutex_) = false;
  bool waiting_ PV2_GUARDED_BY(work_mutex_) = false;  ///< The log waits for an answer.
  bool stopping_ PV2_GUARDED_BY(work_mutex_) = false;
  Status failure_ PV2_GUARDED_BY(work_mutex_);
  std::atomic<bool> has_failed_ = false;        // set with failure_; lets a commit skip the mutex
  Status no_file_ PV2_GUARDED_BY(work_mutex_);  ///< The answer: why there is none. OK: look again.
  std::thread thread_;
};

}  // namespace pv2
