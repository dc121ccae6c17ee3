// SPDX-License-Identifier: Apache-2.0
//
// BackgroundEnv: runs the background work of one LevelDB database, its compactions, on a thread of
// its own with a low priority. LevelDB's default thread serves all databases of the process, those
// of the host too, one after the other, and has the priority of the thread that used LevelDB first.

#pragma once

#include <leveldb/env.h>

#include <optional>
#include <thread>

#include "pv2/base/mutex.h"
#include "pv2/base/status.h"

namespace pv2 {

/// Serves one database at a time, which must be destroyed first. Schedule() is thread-safe, start()
/// and stop() are not. The wrapped Env outlives it.
class BackgroundEnv final : public leveldb::EnvWrapper {
 public:
  explicit BackgroundEnv(leveldb::Env& env) : EnvWrapper(&env) {}
  /// Starts the thread. Called before the database is opened; allowed again after stop().
  /// kResourceExhausted: the machine can start no more threads.
  Status start();
  /// Waits until the thread has ended. Called after the database was destroyed. Idempotent.
  void stop() noexcept PV2_EXCLUDES(work_mutex_);
  ~BackgroundEnv() override { stop(); }
  BackgroundEnv(const BackgroundEnv&) = delete;
  BackgroundEnv& operator=(const BackgroundEnv&) = delete;

  /// Called by LevelDB: runs `work` on the thread. A database schedules one work at a time.
  void Schedule(void (*work)(void*), void* argument) override PV2_EXCLUDES(work_mutex_);

 private:
  struct Work {
    void (*function)(void*);
    void* argument;
  };
  void run() PV2_EXCLUDES(work_mutex_);

  Mutex work_mutex_;
  CondVar wake_;
  std::optional<Work> work_ PV2_GUARDED_BY(work_mutex_);  // a database has one at a time
  bool stopping_ PV2_GUARDED_BY(work_mutex_) = false;
  std::thread thread_;
};

}  // namespace pv2
