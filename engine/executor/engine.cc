// SPDX-License-Identifier: Apache-2.0
//
// Puts the parts together: which part is told of what, and which parts have deadlines.

#include "executor/engine.h"

#include <utility>

#include "pv2/engine/executor_options.h"

namespace pv2 {

Engine::Engine(ExecutorOptions options)
    : core(std::move(options)),
      publisher(core, {.do_tree_works = do_tree_works,
                       .go_on_with_sorted = go_on_with_sorted,
                       .sort_collected = sort_collected,
                       .carry_out_waiting_orders = carry_out_waiting_orders,
                       .audit_now_and_then = audit_now_and_then,
                       .store_failed = answer_all_waiters,
                       .timers_moved = [this] { timers.earliest_moved(); }}),
      offloads(core, publisher),
      results(core, publisher),
      admission(core, publisher, results),
      messages(core, publisher, results),
      repairs(core, publisher, results, messages),
      background_load(core, publisher, results),
      timers(core),
      listeners(std::make_shared<Listeners>(core)),
      chores(std::make_shared<Chores>(core)),
      deadlocks(core, publisher),
      stuck_detector(core),
      expiry(core, publisher, results),
      wake_port(make_ref<WakePort>(core)),
      workers(core, publisher, *wake_port) {
  core.admission = &admission;
  core.offloads = &offloads;
  timers.add(*chores);
  // Without workers no thread could look while a step runs.
  if (core.options.workers != 0) timers.add(stuck_detector);
  if (core.options.retention.ttl != Duration::zero()) timers.add(expiry);
  chores->on_change([this] { timers.earliest_moved(); });
  expiry.on_change([this] { timers.earliest_moved(); });
  core.tell_work_to_stop = [this] { offloads.tell_later(); };
  core.state.news.set_listeners(listeners->any());
  core.tell_news = [this] { listeners->tell(); };
  if (core.options.workers != 0) {
    timers.add(deadlocks);
    deadlocks.on_change([this] { timers.earliest_moved(); });
    core.expect_deadlock_search = [this] { deadlocks.expect_search(); };
  }
}

Engine::~Engine() = default;

Status Engine::make_threads() {
  if (!core.pool->started().ok()) return core.pool->started();
  if (core.options.workers == 0) return Status();
  Status made = timers.make_thread(gate);
  if (!made.ok()) return made;
  const unsigned reserved = core.scheduler.has_top_classes() ? core.options.reserved_workers : 0;
  return workers.make_threads(core.options.workers, reserved, gate);
}

}  // namespace pv2
