// SPDX-License-Identifier: Apache-2.0
//
// AsyncExecutor: the verbs of ProcedureExecutor that take a callback instead of blocking.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <cstdint>
#include <functional>
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

/// Which thread calls the callbacks.
enum class CallbackThread : std::uint8_t {
  /// A thread of the executor's pool. A callback may block there and take its time.
  kPool,
  /// The thread that has the answer: any thread of the executor or its store, or any thread of the
  /// host that is in a call of the executor, also the one that calls the verb, before the verb
  /// returns. No thread has to wake up, so what follows from an answer begins at once. While the
  /// callback runs, usually nothing that has become durable takes effect: it must be short, must
  /// not block, and must not take a mutex that is held during calls of the executor. It may call
  /// the verbs of async(); what it submits and acknowledges may take effect only when it has
  /// returned, in the order of its calls. A callback that a verb in a callback causes comes after
  /// it; of callbacks that cause each other without an end, the pool calls the rest. The executor
  /// must outlive the call in which a callback runs, not only the callback.
  kEngine,
};

/// What ProcedureExecutor::async() returns. Each verb does what the verb of that name in
/// ProcedureExecutor does, but does not block: it calls `done` with the answer, once, on the
/// CallbackThread. What `done` throws is dropped. A caller that does not want the answer gives an
/// empty `done`. A step may call the verbs.
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
  /// Submits a procedure and calls `done` with its result when it has ended, or with the reason why
  /// it is not accepted or no result will come. The result is then deleted, as acknowledge()
  /// deletes it, also if `done` throws or is empty: with a nonce, by which it could be found, once
  /// `done` has returned. Nobody is told when that is durable. With a store that keeps no records
  /// nothing is kept, and the nonce is free as soon as the procedure has ended. See
  /// ProcedureExecutor::execute().
  template <class P>
  void execute(P procedure, SubmitOptions options, ResultCallback done) const {
    internal::require_procedure<P, internal::mistake_in_class<P>()>();
    execute_erased(P::kType, std::make_unique<P>(std::move(procedure)), std::move(options),
                   std::move(done));
  }
  /// Submits a procedure of the registered type `type`, made from encoded fields: for callers that
  /// do not have the class, such as a server. `arguments` has the fields that are declared with
  /// f.arg(), as encode_fields() writes them; a field that it lacks, and every other field, is as
  /// the class makes it. With a nonce this is a duplicate of submit() with the same arguments, and
  /// the other way round. The object is made on the calling thread.
  ///
  /// kInvalidArgument: no such type; `arguments` cannot be decoded; it has fields that are no
  /// arguments of the type, which a newer caller may mean, and which must not be lost silently.
  void submit_encoded(std::string_view type, std::string_view arguments, SubmitOptions options,
                      SubmitCallback done) const;
  /// Finds what was submitted with a nonce, without submitting anything; `replayed` is set. The
  /// answer comes when that procedure is durable. kNotFound: the nonce is not known; it was not
  /// used, or is forgotten. kInvalidArgument: its value is 0. May read the store on the calling
  /// thread.
  void find(const Nonce& nonce, SubmitCallback done) const;
  /// `done` is called when the procedure has ended.
  WaitTicket wait(ProcedureId id, ResultCallback done) const;
  /// Takes a wait back: its `done` is destroyed without a call. False: the answer is on its way.
  bool withdraw(const WaitTicket& ticket) const;
  /// When `done` is called with OK, the result and its nonce are deleted, durably.
  void acknowledge(ProcedureId id, StatusCallback done) const;
  /// When `done` is called with OK, the abort is on stable storage.
  void abort(ProcedureId id, AbortOptions options, StatusCallback done) const;
  /// When `done` is called with OK, the signal is on stable storage.
  void signal(ProcedureId id, std::string name, std::string payload, StatusCallback done) const;
  /// Calls `work` on a pool thread. For callers whose own thread must not block: verbs and listings
  /// may read the store, and call the code of a procedure. What `work` throws is dropped.
  void run(std::function<void()> work) const;

 private:
  friend class ProcedureExecutor;
  AsyncExecutor(Engine& engine, CallbackThread callbacks) noexcept
      : engine_(&engine), callbacks_(callbacks) {}
  void submit_erased(std::string_view type, std::unique_ptr<Procedure> procedure,
                     SubmitOptions options, SubmitCallback done) const;
  void execute_erased(std::string_view type, std::unique_ptr<Procedure> procedure,
                      SubmitOptions options, ResultCallback done) const;

  Engine* engine_;
  CallbackThread callbacks_;
};

}  // namespace pv2
