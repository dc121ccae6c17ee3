// SPDX-License-Identifier: Apache-2.0
//
// Publisher: what happens when a record is durable. It applies the transition to the execution and
// lets the rest of the world see it: counts the join, queues children and next steps, releases
// locks, answers who waits, starts rollback. It is the sink of the store, so it runs on the
// committer's thread, or on the thread that committed when the store needs none. A long list is
// left to a worker that has nothing to do, so that the committer goes on writing meanwhile.
//
// How it fails: a request that comes back with an error ends the run of the engine (store_failed);
// nothing after it is published.

#pragma once

#include "core/engine_core.h"

namespace pv2 {

/// What stands above the publisher and has its say in each section. Functions of the engine, all
/// under the state mutex but the third and the last.
struct PublisherHooks {
  /// Goes on with works on whole trees; whether more is left that can be gone on with.
  bool (*do_tree_works)(EngineCore& core, Effects& effects);
  void (*go_on_with_sorted)(EngineCore& core, TreeWork& work);
  void (*sort_collected)(TreeWork& work);
  void (*carry_out_waiting_orders)(EngineCore& core, Effects& effects);
  void (*audit_now_and_then)(EngineCore& core);
  /// The store has failed: whoever waits for a result is told.
  void (*store_failed)(EngineCore& core, Effects& effects);
  /// A deadline became the earliest.
  std::function<void()> timers_moved;
};

/// Thread-safe.
class Publisher final : public CommitSink {
 public:
  Publisher(EngineCore& core, PublisherHooks hooks) : core_(core), hooks_(std::move(hooks)) {}

  void on_committed(CommitList finished) noexcept override;
  /// Publishes what the store gave back and nobody has published yet, in order, unless another
  /// thread is at it, which then takes all.
  void publish_committed() PV2_EXCLUDES(committed_mutex_);

  /// Publishes requests that are durable (or have failed), and what follows from them.
  void publish(CommitList finished);
  /// Does what a critical section decided. Call it without a lock.
  void perform(Effects& effects);

 private:
  CommitList act_on(Effects& effects);
  void apply(EngineRequest& request, Effects& effects) PV2_REQUIRES(core_.state_mutex);
  void store_failed(EngineRequest& request, Effects& effects) PV2_REQUIRES(core_.state_mutex);

  EngineCore& core_;
  const PublisherHooks hooks_;

  Mutex committed_mutex_;
  CommitList committed_ PV2_GUARDED_BY(committed_mutex_);
  bool publishing_ PV2_GUARDED_BY(committed_mutex_) = false;  ///< Somebody is at it.
};

}  // namespace pv2
