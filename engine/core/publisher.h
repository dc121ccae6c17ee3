// SPDX-License-Identifier: Apache-2.0
//
// Publisher: takes requests that are durable and calls published() of each, in the order in which
// they became durable, a critical section at a time. What a record means for its procedure and its
// tree is decided there (tree/step_published.cc and others). After each section it does what the
// section has decided (Effects).
//
// It is the sink of the store. So it runs on the committer's thread, or on the thread that
// committed if the store has no committer. It leaves a list to a worker that is idle or soon comes
// out of its run. Meanwhile the committer goes on writing. The worker runs the next steps of the
// procedures that it publishes, and so finds them in its cache. A thread that publishes calls
// callbacks of the host, and then publishes what these have made durable.
//
// The invariant: whenever something is committed, a thread publishes and looks again when it has
// done so; or an idle worker was nudged for it; or the committer has more to write and comes again
// after that. What was left once the committer then publishes itself. So no list waits for the
// steps of the workers.
//
// How it fails: a request that comes back with an error ends the run of the engine (store_failed).
// No request after it is published.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "core/engine_core.h"
#include "core/task_pool.h"

namespace pv2 {

/// Functions of higher rooms that the publisher calls. All are called under the state mutex, except
/// sort_collected() and timers_moved().
struct PublisherHooks {
  /// Goes on with works on whole trees. Returns whether there is more to do at once.
  bool (*do_tree_works)(EngineCore& core, Effects& effects);
  void (*go_on_with_sorted)(EngineCore& core, TreeWork& work);
  void (*sort_collected)(TreeWork& work);
  void (*carry_out_waiting_orders)(EngineCore& core, Effects& effects);
  void (*audit_now_and_then)(EngineCore& core);
  /// The store has failed. Answers callers that wait for a result.
  void (*store_failed)(EngineCore& core, Effects& effects);
  /// Another timer has become the earliest.
  std::function<void()> timers_moved;
};

/// Thread-safe.
class Publisher final : public CommitSink {
 public:
  Publisher(EngineCore& core, PublisherHooks hooks) : core_(core), hooks_(std::move(hooks)) {}

  void on_committed(CommitList finished) noexcept override {
    receive(std::move(finished), /*more_follows=*/false);
  }
  void on_committed_more_follows(CommitList finished) noexcept override {
    receive(std::move(finished), /*more_follows=*/true);
  }
  /// Publishes the requests that the store gave back, in order. If another thread publishes,
  /// returns at once: that thread sees to what has come meanwhile.
  void publish_committed() PV2_EXCLUDES(committed_mutex_);
  /// Whether publish_committed() would publish anything.
  [[nodiscard]] bool has_committed() const noexcept { return has_committed_.load(); }

  /// Publishes requests that are durable or have failed, and the requests that follow from them.
  void publish(CommitList finished);
  /// Does what a critical section decided. The caller holds no lock. In a callback of the host,
  /// what becomes durable at once is published after it.
  void perform(Effects& effects);
  /// The engine halts, and accepts nothing any more, because of `why`: logs it, tells the host and
  /// the callers that wait. Does nothing if it has halted before, or stops.
  void end_run(Status why);
  /// Whether this thread is in a callback of the host (CallbackThread::kEngine).
  [[nodiscard]] bool is_in_callback() const noexcept;
  /// Keeps `requests` until the callback in which this thread is has returned, and then publishes
  /// them. So the requests of many callbacks share a critical section.
  void publish_after_callback(CommitList requests);
  /// Publishes at once the requests that publish_after_callback() has kept on this thread. Returns
  /// whether there were any.
  bool publish_kept();

 private:
  void receive(CommitList finished, bool more_follows) noexcept PV2_EXCLUDES(committed_mutex_);
  void note_committed() noexcept PV2_REQUIRES(committed_mutex_) {
    has_committed_.store(!publishing_ && !committed_.empty());
  }
  /// Who calls the callbacks that have their answer now.
  enum class HostIsCalledBy : std::uint8_t { kThisThread, kPool };
  CommitList act_on(Effects& effects, HostIsCalledBy who);
  void admit_entered(Effects& effects);
  /// Before this thread does something that may take long.
  void give_up_next_poll();
  CommitList call_host(std::span<Task> calls);
  void call_host_on_pool(TaskList calls);
  void apply(EngineRequest& request, Effects& effects) PV2_REQUIRES(core_.state_mutex);
  void end_run(Status why, Effects& effects) PV2_REQUIRES(core_.state_mutex);
  void store_failed(EngineRequest& request, Effects& effects) PV2_REQUIRES(core_.state_mutex);

  EngineCore& core_;
  const PublisherHooks hooks_;

  Mutex committed_mutex_;
  CommitList committed_ PV2_GUARDED_BY(committed_mutex_);
  bool more_follows_ PV2_GUARDED_BY(committed_mutex_) = false;  ///< The store comes again.
  bool publishing_ PV2_GUARDED_BY(committed_mutex_) = false;    ///< A thread publishes.
  std::atomic<bool> has_committed_ = false;                     ///< changed under the mutex
};

}  // namespace pv2
