// SPDX-License-Identifier: Apache-2.0
//
// BackgroundLoad: the thread that loads the store after open() has returned (Load::kInBackground),
// and what follows when it is loaded:
//
//     Recovery::load() -> its effects -> the waits for results that came early
//                      -> the roots that were held back are queued, and loading is over
//                      -> the workers, if start() was called -> the other calls that have waited
//
// Until then the workers and the timers wait at the gate. So all locks that were held are held
// again before anything runs; what was submitted meanwhile stands behind what was there before; and
// nobody who waits for a result comes too late for it.

#pragma once

#include <pv2/base/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "core/start_gate.h"

namespace pv2 {

class Publisher;
class Recovery;
class Results;
struct EngineCore;

/// One thread calls make_thread(), begin() and join(), in this order.
class BackgroundLoad {
 public:
  BackgroundLoad(EngineCore& core, Publisher& publisher, Results& results);
  ~BackgroundLoad();

  /// Makes the thread, which waits for begin(). `start` lets workers and timers begin; it is called
  /// at the end if start() of the executor was called before. Not OK: there is no thread to be had.
  Status make_thread(std::unique_ptr<Recovery> recovery, std::function<void()> start);
  void begin();
  /// Waits for the thread. It ends soon if the engine has halted. Idempotent.
  void join();

 private:
  enum class Then : std::uint8_t { kStart, kWaitForStart, kStop };

  void run(Recovery& recovery, const std::function<void()>& start);
  [[nodiscard]] Then queue_held_back();

  EngineCore& core_;
  Publisher& publisher_;
  Results& results_;
  StartGate gate_;
  std::thread thread_;
};

}  // namespace pv2
