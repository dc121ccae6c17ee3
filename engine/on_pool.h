// SPDX-License-Identifier: Apache-2.0
//
// Whom an asynchronous verb answers: the host's callback, or nobody, on the pool.

#pragma once

#include <pv2/base/status.h>

#include <functional>
#include <utility>

#include "engine_core.h"
#include "pv2/engine/procedure_result.h"

namespace pv2 {

/// `done`, or one that tells nobody if it is empty.
template <class Answer>
std::function<void(Answer)> or_nobody(std::function<void(Answer)> done) {
  if (done) return done;
  return [](const auto& /*answer*/) {};
}

/// Posts `done`, with its answer, to the pool.
inline StatusCallback on_pool(EngineCore& core, StatusCallback done) {
  return [&core, done = or_nobody(std::move(done))](const Status& status) {
    core.pool->post([done, status] { done(status); });
  };
}

}  // namespace pv2
