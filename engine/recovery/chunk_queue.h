// SPDX-License-Identifier: Apache-2.0
//
// ChunkQueue: the chunks that are being decoded, on their way from the thread that scans the store
// to the thread that visits what was read.

#pragma once

#include <pv2/base/mutex.h>

#include <cstddef>
#include <deque>
#include <future>
#include <optional>
#include <utility>

#include "recovery/record_reader.h"

namespace pv2 {

/// One thread puts, another one takes. Thread-safe.
class ChunkQueue {
 public:
  using Chunk = std::future<Result<ReadRecords>>;

  explicit ChunkQueue(std::size_t capacity) : capacity_(capacity) {}

  /// Waits for room. False: the taker wants no more chunks.
  bool put(Chunk chunk) PV2_EXCLUDES(chunks_mutex_) {
    MutexLock lock(chunks_mutex_);
    while (chunks_.size() >= capacity_ && !is_abandoned_) changed_.wait(chunks_mutex_);
    if (is_abandoned_) return false;
    chunks_.push_back(std::move(chunk));
    changed_.notify_all();
    return true;
  }
  /// No chunk comes after those that are there.
  void end() PV2_EXCLUDES(chunks_mutex_) {
    MutexLock lock(chunks_mutex_);
    has_ended_ = true;
    changed_.notify_all();
  }

  /// Waits for the next chunk. nullopt: there is none.
  std::optional<Chunk> take() PV2_EXCLUDES(chunks_mutex_) {
    MutexLock lock(chunks_mutex_);
    while (chunks_.empty() && !has_ended_) changed_.wait(chunks_mutex_);
    if (chunks_.empty()) return std::nullopt;
    Chunk chunk = std::move(chunks_.front());
    chunks_.pop_front();
    changed_.notify_all();
    return chunk;
  }
  /// The taker takes no more.
  void abandon() PV2_EXCLUDES(chunks_mutex_) {
    MutexLock lock(chunks_mutex_);
    is_abandoned_ = true;
    changed_.notify_all();
  }

 private:
  const std::size_t capacity_;
  Mutex chunks_mutex_;
  CondVar changed_;
  std::deque<Chunk> chunks_ PV2_GUARDED_BY(chunks_mutex_);  // oldest first
  bool has_ended_ PV2_GUARDED_BY(chunks_mutex_) = false;
  bool is_abandoned_ PV2_GUARDED_BY(chunks_mutex_) = false;
};

}  // namespace pv2
