// SPDX-License-Identifier: Apache-2.0
//
// StateLock: a section of the state mutex. StateShare: a section in which a worker reads the state
// beside the sections of other workers, and changes the procedures that it has in flight.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/mutex.h>

#include "core/engine_core.h"

namespace pv2 {

/// Holds the state mutex for a scope. At its end it tells the scheduler what was settled, releases
/// the mutex, and starts what the section has made necessary.
class PV2_SCOPED_CAPABILITY StateLock {
 public:
  explicit StateLock(EngineCore& core) PV2_ACQUIRE(core.state_mutex) : core_(core) {
    core_.lock_state();
    outer_ = core_.looks.begin();
  }
  ~StateLock() PV2_RELEASE() {
    core_.flush();
    PV2_ASSERT(core_.state.to_settle.empty(), "a section ends with nothing left to settle");
    const bool look_at_deadlocks = core_.claim_deadlock_task();
    const bool tell_news = core_.state.news.claim_task();
    const bool stops_work = !core_.state.leftovers.work.empty();
    core_.looks.end(outer_);
    core_.unlock_state();
    if (stops_work) core_.tell_work_to_stop();
    if (look_at_deadlocks) core_.expect_deadlock_search();
    if (tell_news) core_.pool->post_news(core_.tell_news);
  }
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;

 private:
  EngineCore& core_;
  Looks* outer_ = nullptr;
};

/// Holds the share of one worker for a scope. While it does, no thread holds the state mutex, which
/// takes all shares: so what it reads does not change, except procedures that other workers have in
/// flight, and no other thread reads those that this worker has. Takes no other mutex of the
/// engine.
class PV2_SCOPED_CAPABILITY StateShare {
 public:
  StateShare(EngineCore& core, std::size_t worker) PV2_ACQUIRE_SHARED(core.state_mutex)
      : share_(core.shares[worker]) {
    PV2_ASSERT(worker < core.share_count, "a worker has a share if the store keeps no records");
    lock();
  }
  ~StateShare() PV2_RELEASE() { unlock(); }
  StateShare(const StateShare&) = delete;
  StateShare& operator=(const StateShare&) = delete;

 private:
  void lock() PV2_NO_THREAD_SAFETY_ANALYSIS { share_.share_mutex.lock(); }
  void unlock() PV2_NO_THREAD_SAFETY_ANALYSIS { share_.share_mutex.unlock(); }

  EngineCore::Share& share_;
};

}  // namespace pv2
