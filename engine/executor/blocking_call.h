// SPDX-License-Identifier: Apache-2.0
//
// How the public verbs that block wait for an answer from another thread.

#pragma once

#include <pv2/base/latch.h>
#include <pv2/base/status.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/engine_core.h"

namespace pv2 {

/// The answer of a blocking verb that is called on a thread of the executor.
inline Status on_engine_thread(std::string_view verb) {
  return Status(
      StatusCode::kFailedPrecondition,
      std::string(verb) +
          " would block a thread of the executor, which may be the one that it waits for; use the "
          "asynchronous form");
}

/// Does nothing on a thread of the executor: it may be the one that loads, or have to publish what
/// others submit.
inline void block_until_loaded(EngineCore& core) {
  if (!EngineThread::belongs_to(&core)) core.loading.wait();
}

/// Blocks until the answer is there. This thread does the work of the store's own thread, if there
/// is none or it sleeps.
template <class T>
T await(EngineCore& core, Latch<T>& latch) {
  while (!latch.has_value() &&
         (core.store.pump() || core.store.write_queued() != Written::kNothing)) {
  }
  if (latch.has_value()) core.store.wake_writer();  // for what this thread may have queued besides
  latch.wait();
  return *std::move(latch.value);
}

/// Gives `begin` a reply, blocks until it is called, and returns its value.
template <class T, class Begin>
T block(EngineCore& core, std::string_view verb, Begin begin) {
  if (EngineThread::belongs_to(&core)) return on_engine_thread(verb);
  const auto latch = std::make_shared<Latch<T>>();
  begin(Reply<T>{[latch](T answer) { latch->set(std::move(answer)); }, ReplyOn::kWaitingCaller});
  return await(core, *latch);
}

}  // namespace pv2
