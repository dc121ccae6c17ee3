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

#include "engine_core.h"

namespace pv2 {

class Timers;

/// Thread-safe.
class Publisher final : public CommitSink {
 public:
  explicit Publisher(EngineCore& core) : core_(core) {}
  /// Whom to tell when a deadline became the earliest. Set once, before anything runs.
  void set_timers(Timers* timers) { timers_ = timers; }

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
  Timers* timers_ = nullptr;

  Mutex committed_mutex_;
  CommitList committed_ PV2_GUARDED_BY(committed_mutex_);
  bool publishing_ PV2_GUARDED_BY(committed_mutex_) = false;  ///< Somebody is at it.
};

}  // namespace pv2
