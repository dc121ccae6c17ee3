// SPDX-License-Identifier: Apache-2.0
//
// ServerProcess: the service as a process that can be killed and started again, as its parent sees
// it.

#pragma once

#include <pv2/base/mutex.h>
#include <pv2/base/status.h>
#include <pv2/base/time.h>
#include <pv2/cluster/child_process.h>

#include <cstdint>
#include <memory>
#include <string>

#include "service.h"

namespace counter {

/// Owned by the thread that starts it, except kill_now(). The destructor kills it.
class ServerProcess {
 public:
  ServerProcess(std::string store, Dedup dedup) : store_(std::move(store)), dedup_(dedup) {}

  /// Starts the process, for the first time or again, and returns where it listens.
  [[nodiscard]] pv2::Result<std::string> start();
  /// SIGKILL, at once. hear() tells when it is gone. Thread-safe.
  void kill_now() PV2_EXCLUDES(process_mutex_);

  /// Whether it was killed, and hear() has not told yet.
  [[nodiscard]] bool is_dying() PV2_EXCLUDES(process_mutex_);

  enum class State : std::uint8_t { kRuns, kKilled, kEndedByItself };
  /// Listens to the process for so long, or until it has ended.
  [[nodiscard]] State hear(pv2::Duration patience);

  /// Of all its lives together, as far as they could tell.
  [[nodiscard]] ServiceCounts counts() const noexcept;
  [[nodiscard]] std::uint64_t kills() const noexcept { return kills_; }

 private:
  void take(const std::string& line);

  const std::string store_;
  const Dedup dedup_;
  ServiceCounts earlier_;  // of the lives that have ended
  ServiceCounts present_;
  std::uint64_t kills_ = 0;

  pv2::Mutex process_mutex_;
  std::unique_ptr<pv2::cluster::ChildProcess> process_;  // changed by the owner, under the mutex
  bool is_killed_ PV2_GUARDED_BY(process_mutex_) = false;
};

}  // namespace counter
