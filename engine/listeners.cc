// SPDX-License-Identifier: Apache-2.0
//
// Telling: news are taken in batches under the state mutex and told without any lock.

#include "listeners.h"

#include <algorithm>
#include <string>

#include "engine_core.h"
#include "guard.h"

namespace pv2 {

ListenerId Listeners::add(ProcedureListener listener) {
  auto made = std::make_shared<Listener>();
  made->call = std::move(listener);
  MutexLock lock(listeners_mutex_);
  made->id = ListenerId{++last_id_};
  listeners_.push_back(made);
  core_.has_listeners.store(true, std::memory_order_relaxed);
  return made->id;
}

void Listeners::remove(ListenerId id) {
  Shared found;
  {
    MutexLock lock(listeners_mutex_);
    const auto at = std::find_if(listeners_.begin(), listeners_.end(),
                                 [&](const Shared& listener) { return listener->id == id; });
    if (at == listeners_.end()) return;
    found = *at;
    listeners_.erase(at);
    core_.has_listeners.store(!listeners_.empty(), std::memory_order_relaxed);
  }
  found->guard.remove(!EngineThread::belongs_to(&core_));
}

void Listeners::tell() {
  for (;;) {
    std::vector<ProcedureNews> news;
    {
      StateLock lock(core_);
      news.swap(core_.state.news);
      if (news.empty()) {
        core_.state.news_task_posted = false;
        return;
      }
    }
    std::vector<Shared> listeners;
    {
      MutexLock lock(listeners_mutex_);
      listeners = listeners_;
    }
    for (const ProcedureNews& one : news) {
      for (const Shared& listener : listeners) tell_one(*listener, one);
    }
  }
}

void Listeners::tell_one(Listener& listener, const ProcedureNews& news) {
  listener.guard.run([&] {
    const Status told = guarded(
        [&] { return "a listener, told of procedure " + std::to_string(news.id.value) + ","; },
        [&] { listener.call(news); });
    if (!told.ok()) log(core_.options.log, LogLevel::kError, told.message());
  });
}

}  // namespace pv2
