// SPDX-License-Identifier: Apache-2.0
//
// AsyncExecutor: the verbs of ProcedureExecutor that take a callback instead of blocking.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "pv2/engine/abort_options.h"
#include "pv2/engine/procedure.h"
#include "pv2/engine/procedure_class.h"
#include "pv2/engine/procedure_result.h"
#include "pv2/engine/submit_options.h"

namespace pv2 {

class Engine;

/// What ProcedureExecutor::async() returns. Each verb does what the verb of that name in
/// ProcedureExecutor does, but does not block: it calls `done` with the answer, once, on a pool
/// thread. A caller that does not want the answer gives an empty `done`. A step may call the verbs.
///
/// Copies are equivalent; each is valid as long as the executor. Thread-safe.
class AsyncExecutor {
 public:
  /// `done` is called when the submission is durable or refused.
  template <class P>
  void submit(P procedure, SubmitOptions options, SubmitCallback done) const {
    internal::require_procedure<P, internal::mistake_in_class<P>()>();
    submit_erased(P::kType, std::make_unique<P>(std::move(procedure)), std::move(options),
                  std::move(done));
  }
  /// `done` is called when the procedure has ended.
  void wait(ProcedureId id, ResultCallback done) const;
  /// When `done` is called with OK, the result and its nonce are deleted, durably.
  void acknowledge(ProcedureId id, StatusCallback done) const;
  /// When `done` is called with OK, the abort is on stable storage.
  void abort(ProcedureId id, AbortOptions options, StatusCallback done) const;
  /// When `done` is called with OK, the signal is on stable storage.
  void signal(ProcedureId id, std::string name, std::string payload, StatusCallback done) const;

 private:
  friend class ProcedureExecutor;
  explicit AsyncExecutor(Engine& engine) noexcept : engine_(&engine) {}
  void submit_erased(std::string_view type, std::unique_ptr<Procedure> procedure,
                     SubmitOptions options, SubmitCallback done) const;

  Engine* engine_;
};

}  // namespace pv2
