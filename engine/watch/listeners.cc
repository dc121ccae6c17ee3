// SPDX-License-Identifier: Apache-2.0
//
// News is taken in batches under the state mutex and told without any lock.

#include "watch/listeners.h"

#include <algorithm>
#include <string>

#include "core/engine_core.h"
#include "core/state_lock.h"
#include "model/guard.h"
#include "model/names.h"
#include "pv2/engine/executor_options.h"

namespace pv2 {
namespace {

// Pieces of news that one task tells: few, so that other tasks of a host without threads run soon.
constexpr std::size_t kBatch = 64;

}  // namespace

Result<std::uint64_t> Listeners::add(ProcedureListener listener) {
  if (!listener) {
    return Status(StatusCode::kInvalidArgument, "the listener is empty: there is nothing to call");
  }
  auto made = std::make_shared<Listener>();
  made->call = std::move(listener);
  MutexLock lock(listeners_mutex_);
  made->id = ++last_id_;
  listeners_.push_back(made);
  any_.store(true, std::memory_order_relaxed);
  return made->id;
}

void Listeners::remove(std::uint64_t id) {
  Shared found;
  {
    MutexLock lock(listeners_mutex_);
    const auto at = std::find_if(listeners_.begin(), listeners_.end(),
                                 [&](const Shared& listener) { return listener->id == id; });
    if (at == listeners_.end()) return;
    found = *at;
    listeners_.erase(at);
    any_.store(!listeners_.empty(), std::memory_order_relaxed);
  }
  found->guard.remove(!EngineThread::belongs_to(&core_));
}

// The next task tells the rest of the news. It is posted when this one ends: on a pool without
// threads, the tasks that are already queued run first.
void Listeners::tell() {
  std::vector<ProcedureNews> news;
  {
    StateLock lock(core_);
    news = core_.state.news.take(kBatch);
  }
  std::vector<Shared> listeners;
  {
    MutexLock lock(listeners_mutex_);
    listeners = listeners_;
  }
  for (const ProcedureNews& one : news) {
    if (one.missed != 0) {
      log(core_.options.log, LogLevel::kWarning,
          std::to_string(one.missed) + " news were not told to listeners, as " +
              std::to_string(ProcedureNews::kWaitingMax) +
              " waited already: a listener is too slow for what happens");
    }
    for (const Shared& listener : listeners) tell_one(*listener, one);
  }
  StateLock lock(core_);
  core_.state.news.told();
}

void Listeners::tell_one(Listener& listener, const ProcedureNews& news) {
  listener.guard.run([&]() noexcept {
    const Status told = guarded([&] { return "a listener, told of " + name_of(news.id) + ","; },
                                [&] { listener.call(news); });
    if (!told.ok()) log(core_.options.log, LogLevel::kError, told.message());
  });
}

}  // namespace pv2
