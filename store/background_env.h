// SPDX-License-Identifier: Apache-2.0
//
// BackgroundEnv: gives LevelDB a thread of the store's own for its background work, which is to
// make tables of its log, and tables of tables. LevelDB's thread for that serves all databases of a
// process one after the other, those of the host too, and has the priority of whoever was the first
// to use one. This one serves one store, and those who commit go before it.

#pragma once

#include <leveldb/env.h>

#include <optional>
#include <thread>

#include "pv2/base/mutex.h"
#include "pv2/base/status.h"

namespace pv2 {

/// For one database at a time, which is destroyed before it. As thread-safe as the Env it wraps,
/// which outlives it.
class BackgroundEnv final : public leveldb::EnvWrapper {
 public:
  explicit BackgroundEnv(leveldb::Env& env) : EnvWrapper(&env) {}
  /// Starts the thread. Called before the database is opened; after stop() it may be called again.
  Status start();
  /// Waits until the thread has ended. Called after the database was destroyed. Idempotent.
  void stop() noexcept PV2_EXCLUDES(work_mutex_);
  ~BackgroundEnv() override { stop(); }
  BackgroundEnv(const BackgroundEnv&) = delete;
  BackgroundEnv& operator=(const BackgroundEnv&) = delete;

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
