// SPDX-License-Identifier: Apache-2.0
//
// Lock order: core_mutex_, then the state mutex, then the scheduler's. core_mutex_ is held during a
// wake, so close() returns only when no wake is in the engine.

#include "steps/wake_port.h"

#include "core/state_lock.h"

namespace pv2 {

void WakePort::wake(AwaitSlot& slot) noexcept {
  MutexLock open(core_mutex_);
  if (core_ == nullptr) return;
  StateLock lock(*core_, Width::kNarrow);
  core_->wake(slot.id(), slot.epoch());
  slot.set_woken();
}

void WakePort::close() {
  MutexLock open(core_mutex_);
  core_ = nullptr;
}

}  // namespace pv2
