// SPDX-License-Identifier: Apache-2.0
//
// StateLock: a section of the state mutex.

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
    core_.state_mutex.unlock();
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

}  // namespace pv2
