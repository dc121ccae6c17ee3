// SPDX-License-Identifier: Apache-2.0
//
// Whoever takes the call out of the object, under the mutex, answers it; nobody answers it, or
// calls the engine, under the mutex.

#include "order_call.h"

#include <pv2/engine/operator_console.h>
#include <pv2/engine/procedure_executor.h>

#include <utility>

#include "operator_messages.h"
#include "refusal.h"

namespace pv2 {

void OrderCall::begin(const std::shared_ptr<IncomingCall>& call, ProcedureId id, RepairVerb verb,
                      RepairNote note) {
  // Before the call waits: from then on another thread may answer it.
  call->on_cancel([weak = weak_from_this()](const Status& why) {
    if (const auto self = weak.lock()) self->cancel(why);
  });
  const Nonce nonce = call->nonce();
  Status cancelled;
  {
    const MutexLock lock(mutex_);
    cancelled = cancelled_;
    if (cancelled.ok()) call_ = call;
  }
  if (!cancelled.ok()) return call->refuse(cancelled);
  const OrderTicket ticket = executor_.operate().order_once(
      nonce, id, verb, std::move(note),
      [self = shared_from_this()](const Result<Ordered>& ordered) { self->answer(ordered); });
  bool waits = false;
  {
    const MutexLock lock(mutex_);
    waits = call_ != nullptr;
    ticket_ = ticket;
  }
  // It was cancelled meanwhile, when there was no ticket; or answered, and then this does nothing.
  if (!waits) executor_.operate().withdraw(ticket);
}

void OrderCall::answer(const Result<Ordered>& ordered) {
  std::shared_ptr<IncomingCall> call;
  {
    const MutexLock lock(mutex_);
    call = std::exchange(call_, nullptr);
  }
  if (call == nullptr) return;
  if (ordered.ok()) {
    return call->reply(remote::to_bytes(remote::OrderedMessage{ordered->replayed}));
  }
  const Status why = ordered.status();
  why.code() == StatusCode::kKeyReused ? call->fail(why) : refuse(executor_, *call, why);
}

void OrderCall::cancel(const Status& why) {
  std::shared_ptr<IncomingCall> call;
  OrderTicket ticket;
  {
    const MutexLock lock(mutex_);
    call = std::exchange(call_, nullptr);
    if (call == nullptr) cancelled_ = why;
    ticket = ticket_;
  }
  if (call == nullptr) return;
  // Perhaps the order is carried out: a refusal with `why` would say that this copy did nothing.
  call->refuse({StatusCode::kUnknownOutcome,
                "the order goes on, and nobody waits for its answer: " + why.to_string()});
  executor_.operate().withdraw(ticket);
}

}  // namespace pv2
