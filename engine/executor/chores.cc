// SPDX-License-Identifier: Apache-2.0
//
// A host has a handful of chores, so they are looked through one by one.

#include "executor/chores.h"

#include <algorithm>
#include <utility>

#include "core/engine_core.h"
#include "model/guard.h"
#include "pv2/engine/executor_options.h"
#include "pv2/engine/limits.h"

namespace pv2 {

Result<std::uint64_t> Chores::add(std::string name, Duration period, std::function<void()> work) {
  if (!work) {
    return Status(StatusCode::kInvalidArgument,
                  "chore '" + name + "' has no work: the function is empty");
  }
  if (period <= Duration::zero()) {
    return Status(StatusCode::kInvalidArgument, "chore '" + name + "' has a period of " +
                                                    std::to_string(period.count()) +
                                                    " us; it has to be positive");
  }
  auto chore = std::make_shared<Periodic>();
  name.resize(std::min(name.size(), limits::kChoreNameBytes));
  chore->name = std::move(name);
  chore->period = period;
  chore->work = std::move(work);
  chore->due = later(core_.clock.steady_now(), chore->period);
  std::uint64_t id = 0;
  {
    MutexLock lock(chores_mutex_);
    id = chore->id = ++last_id_;
    chores_.push_back(std::move(chore));
    any_.store(true, std::memory_order_relaxed);
  }
  changed_();
  return id;
}

void Chores::remove(std::uint64_t id) {
  Shared found;
  {
    MutexLock lock(chores_mutex_);
    const auto at = std::find_if(chores_.begin(), chores_.end(),
                                 [&](const Shared& chore) { return chore->id == id; });
    if (at == chores_.end()) return;
    found = *at;
    chores_.erase(at);
  }
  found->guard.remove(!EngineThread::belongs_to(&core_));
}

std::optional<SteadyTime> Chores::next_due() {
  std::optional<SteadyTime> next;
  if (!any_.load(std::memory_order_relaxed)) return next;
  MutexLock lock(chores_mutex_);
  for (const Shared& chore : chores_) {
    if (chore->due && (!next || *chore->due < *next)) next = chore->due;
  }
  return next;
}

std::size_t Chores::fire(SteadyTime now) {
  if (!any_.load(std::memory_order_relaxed)) return 0;
  std::vector<Shared> due;
  {
    MutexLock lock(chores_mutex_);
    for (const Shared& chore : chores_) {
      if (!chore->due || *chore->due > now) continue;
      chore->due.reset();
      due.push_back(chore);
    }
  }
  for (Shared& chore : due) {
    core_.pool->post_blocking([this, chore = std::move(chore)] { run(chore); });
  }
  return due.size();
}

void Chores::run(const Shared& chore) {
  const bool again = chore->guard.run([&]() noexcept {
    const Status done = guarded([&] { return "chore '" + chore->name + "'"; }, chore->work);
    if (!done.ok()) log(core_.options.log, LogLevel::kError, done.message());
  });
  if (!again) return;
  {
    MutexLock lock(chores_mutex_);
    chore->due = later(core_.clock.steady_now(), chore->period);
  }
  changed_();
}

}  // namespace pv2
