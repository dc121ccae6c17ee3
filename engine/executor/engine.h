// SPDX-License-Identifier: Apache-2.0
//
// Engine: the parts of an executor, put together in the order in which they depend on each other.
// It has no behaviour of its own.

#pragma once

#include <memory>
#include <thread>

#include "core/engine_core.h"
#include "core/publisher.h"
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
  explicit Engine(ExecutorOptions options)
      : core(std::move(options)),
        publisher(core, {.do_tree_works = do_tree_works,
                         .go_on_with_sorted = go_on_with_sorted,
                         .sort_collected = sort_collected,
                         .carry_out_waiting_orders = carry_out_waiting_orders,
                         .audit_now_and_then = audit_now_and_then,
                         .store_failed = answer_all_waiters,
                         .timers_moved = [this] { timers.earliest_moved(); }}),
        offloads(core, publisher),
        admission(core, publisher),
        results(core, publisher),
        messages(core, publisher, results),
        repairs(core, publisher, results, messages),
        timers(core),
        listeners(std::make_shared<Listeners>(core)),
        chores(std::make_shared<Chores>(core)),
        deadlocks(core, publisher),
        stuck_detector(core),
        expiry(core, publisher, results),
        wake_port(std::make_shared<WakePort>(core)),
        workers(core, publisher, wake_port) {
    core.admission = &admission;
    core.offloads = &offloads;
    timers.add(*chores);
    // Without workers no thread could look while a step runs.
    if (core.options.workers != 0) timers.add(stuck_detector);
    if (core.options.retention.ttl != Duration::zero()) timers.add(expiry);
    chores->on_change([this] { timers.earliest_moved(); });
    expiry.on_change([this] { timers.earliest_moved(); });
    core.tell_work_to_stop = [this] { offloads.tell_later(); };
    core.has_listeners = &listeners->any();
    core.tell_news = [this] { listeners->tell(); };
    if (core.options.workers != 0) {
      timers.add(deadlocks);
      deadlocks.on_change([this] { timers.earliest_moved(); });
      core.expect_deadlock_search = [this] { deadlocks.expect_search(); };
    }
  }

  /// Makes the threads that the options ask for; they begin with start().
  Status make_threads() {
    if (!core.pool->started().ok()) return core.pool->started();
    if (core.options.workers == 0) return Status();
    Status made = timers.make_thread(gate);
    if (!made.ok()) return made;
    return workers.make_threads(core.options.workers, core.options.reserved_workers, gate);
  }

  EngineCore core;
  StartGate gate;
  Publisher publisher;
  Offloads offloads;
  Admission admission;
  Results results;
  Messages messages;
  Repairs repairs;
  Timers timers;
  // Shared with the handles of the host, which hold them only while they remove something.
  std::shared_ptr<Listeners> listeners;
  std::shared_ptr<Chores> chores;
  Deadlocks deadlocks;
  StuckDetector stuck_detector;
  Expiry expiry;
  HostThread host_thread;
  std::thread stopping;  ///< Runs the stop; made by the first call of stop().
  // Shared with completions that may come after the engine is gone.
  std::shared_ptr<WakePort> wake_port;
  Workers workers;
  Random host_random{0};  ///< Of the host's thread; set by open().
};

}  // namespace pv2
