// SPDX-License-Identifier: Apache-2.0
//
// BackgroundLoad: the thread that loads the store after open() has returned (Load::kInBackground),
// and what follows when it is loaded:
//
//     Recovery::load() -> its effects -> the roots that were held back are queued, loading is over
//                      -> the callers that have waited -> the workers, if start() was called
//
// Until then the workers and the timers wait at the gate. So all locks that were held are held
// again before anything runs, and what was submitted meanwhile stands behind what was there before.

#pragma once

#include <pv2/base/status.h>

#include <functional>
#include <memory>
#include <thread>

namespace pv2 {

class Publisher;
class Recovery;
class Results;
struct EngineCore;

/// Thread-safe, but begin() comes first.
class BackgroundLoad {
 public:
  BackgroundLoad(EngineCore& core, Publisher& publisher, Results& results);
  ~BackgroundLoad();

  /// Starts the thread. `start` lets workers and timers begin; it is called at the end if start()
  /// of the executor was called before. Not OK: there is no thread to be had, and nothing has
  /// begun.
  Status begin(std::unique_ptr<Recovery> recovery, std::function<void()> start);
  /// Waits for the thread. It gives up soon if the engine has halted. Idempotent.
  void join();

 private:
  void run(Recovery& recovery, const std::function<void()>& start);
  [[nodiscard]] bool end(const Status& loaded);

  EngineCore& core_;
  Publisher& publisher_;
  Results& results_;
  std::thread thread_;
};

}  // namespace pv2
