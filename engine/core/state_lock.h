// SPDX-License-Identifier: Apache-2.0
//
// StateLock: a section of the state mutex. With a store that keeps no records, a worker goes on
// with a procedure that is alone in its tree without that mutex: it holds its share
// (EngineCore::shares), and no other mutex of the engine. Therefore a section is
//
//     narrow    if it touches no procedure with which a worker goes on. It may read what names such
//               a procedure and the state of its domain, and change its `waiters`. Workers go on
//               meanwhile.
//     wide      if it may touch everything. It holds all shares, so no worker goes on meanwhile.
//
// A section that has begun narrow may become wide (EngineCore::widen()).

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/mutex.h>

#include <cstdint>

#include "core/engine_core.h"

namespace pv2 {

enum class Width : std::uint8_t { kNarrow, kWide };

/// Holds the state mutex for a scope. At its end it tells the scheduler what was settled, releases
/// the mutex, and starts what the section has made necessary.
class PV2_SCOPED_CAPABILITY StateLock {
 public:
  explicit StateLock(EngineCore& core, Width width = Width::kWide) PV2_ACQUIRE(core.state_mutex)
      : core_(core) {
    core_.lock_state();
    if (width == Width::kWide) core_.widen();
    outer_ = core_.looks.begin();
  }
  ~StateLock() PV2_RELEASE() {
    core_.flush();
    PV2_ASSERT(core_.state.to_settle.empty(), "a section ends with nothing left to settle");
    const bool look_at_deadlocks = core_.claim_deadlock_task();
    const bool tell_news = core_.state.news.claim_task();
    const bool stops_work = core_.state.leftovers.claim_work_task();
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

}  // namespace pv2
