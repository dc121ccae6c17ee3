// SPDX-License-Identifier: Apache-2.0
//
// Lock order: core_mutex_, then the state mutex, then the scheduler's.

#include "wake_port.h"

namespace pv2 {

void WakePort::wake(ProcedureId id, std::uint32_t epoch) noexcept {
  MutexLock open(core_mutex_);
  if (core_ == nullptr) return;
  StateLock lock(*core_);
  Execution* const execution = core_->find(id);
  if (execution == nullptr || execution->epoch != epoch) return;
  switch (execution->phase) {
    case Phase::kWaiting:
      core_->state.timers.cancel(*execution);
      core_->queue(*execution, execution->holds_locks() ? Disposition::kFront : Disposition::kBack);
      return;
    case Phase::kInFlight:
      execution->wake_pending = true;  // seen when the record is published: never lost
      return;
    case Phase::kInserting:
    case Phase::kQueued:  // it runs anyway
    case Phase::kIdle:
    case Phase::kDropping:
      return;
  }
}

void WakePort::close() {
  MutexLock open(core_mutex_);
  core_ = nullptr;
}

}  // namespace pv2
