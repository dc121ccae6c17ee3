// SPDX-License-Identifier: Apache-2.0
//
// Chooses the pool, and remembers for each thread the engines that it runs for.

#include "core/task_pool.h"

#include "core/manual_pool.h"
#include "core/threaded_pool.h"

namespace pv2 {
namespace {

thread_local const EngineThread* innermost = nullptr;

}  // namespace

std::unique_ptr<TaskPool> TaskPool::make(unsigned threads, const void* engine) {
  if (threads == 0) return std::make_unique<ManualPool>(engine);
  return std::make_unique<ThreadedPool>(threads, engine);
}

EngineThread::EngineThread(const void* engine, std::size_t seat) noexcept
    : engine_(engine), seat_(seat), outer_(innermost) {
  innermost = this;
}
EngineThread::~EngineThread() { innermost = outer_; }
bool EngineThread::belongs_to(const void* engine) noexcept {
  const EngineThread* mark = innermost;
  while (mark != nullptr && mark->engine_ != engine) mark = mark->outer_;
  return mark != nullptr;
}
std::size_t EngineThread::seat_in(const void* engine) noexcept {
  for (const EngineThread* mark = innermost; mark != nullptr; mark = mark->outer_) {
    if (mark->engine_ == engine && mark->seat_ != kNoSeat) return mark->seat_;
  }
  return kNoSeat;
}

}  // namespace pv2
