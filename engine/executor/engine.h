// SPDX-License-Identifier: Apache-2.0
//
// Engine: the parts of an executor, put together in the order in which they depend on each other.
// It has no behaviour of its own.

#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/engine_core.h"
#include "core/publisher.h"
#include "executor/background_load.h"
#include "executor/chores.h"
#include "executor/host_thread.h"
#include "executor/timers.h"
#include "orders/bypass.h"
#include "orders/deadlocks.h"
#include "orders/messages.h"
#include "orders/repairs.h"
#include "steps/offloads.h"
#include "steps/wake_port.h"
#include "steps/workers.h"
#include "submission/admission.h"
#include "submission/expiry.h"
#include "submission/results.h"
#include "submission/waiters.h"
#include "tree/rollback_planning.h"
#include "tree/tree_works.h"
#include "watch/listeners.h"
#include "watch/state_audit.h"
#include "watch/stuck_detector.h"

namespace pv2 {

/// Thread-safe as its parts are.
class Engine {
 public:
  explicit Engine(ExecutorOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Makes the threads that the options ask for; they begin with start().
  Status make_threads();

  EngineCore core;
  StartGate gate;
  Publisher publisher;
  Offloads offloads;
  Results results;
  Admission admission;
  Messages messages;
  Repairs repairs;
  BackgroundLoad background_load;
  Timers timers;
  // Shared with the handles of the host, which hold them only while they remove something.
  std::shared_ptr<Listeners> listeners;
  std::shared_ptr<Chores> chores;
  Deadlocks deadlocks;
  StuckDetector stuck_detector;
  Expiry expiry;
  HostThread host_thread;
  std::thread stopping;  ///< Runs the stop, unless the host's own thread does.
  /// Engine code; called when the stop has ended.
  std::vector<std::function<void()>> stop_waiters PV2_GUARDED_BY(core.state_mutex);
  // Shared with completions that may come after the engine is gone.
  Ref<WakePort> wake_port;
  Workers workers;
  Random host_random{0};  ///< Of the host's thread; set by open().
};

}  // namespace pv2
