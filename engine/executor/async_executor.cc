// SPDX-License-Identifier: Apache-2.0
//
// The verbs with a callback: each is one call into the part that does it.

#include "pv2/engine/async_executor.h"

#include <utility>

#include "executor/engine.h"

namespace pv2 {
namespace {

template <class T>
Reply<T> reply_to(std::function<void(T)> done, CallbackThread callbacks) {
  const bool on_pool = callbacks == CallbackThread::kPool;
  return {std::move(done), on_pool ? ReplyOn::kPool : ReplyOn::kEngine};
}

}  // namespace

void AsyncExecutor::submit_erased(std::string_view type, std::unique_ptr<Procedure> procedure,
                                  SubmitOptions options, SubmitCallback done) const {
  engine_->admission.submit(type, std::move(procedure), std::move(options),
                            {.reply = reply_to(std::move(done), callbacks_)});
}

void AsyncExecutor::execute_erased(std::string_view type, std::unique_ptr<Procedure> procedure,
                                   SubmitOptions options, ResultCallback done) const {
  if (!done) done = [](const Result<ProcedureResult>&) {};
  engine_->admission.submit(type, std::move(procedure), std::move(options),
                            {.taker = reply_to(std::move(done), callbacks_)});
}

void AsyncExecutor::submit_encoded(std::string_view type, std::string_view arguments,
                                   SubmitOptions options, SubmitCallback done) const {
  engine_->admission.submit_encoded(type, arguments, std::move(options),
                                    {.reply = reply_to(std::move(done), callbacks_)});
}

void AsyncExecutor::find(const Nonce& nonce, SubmitCallback done) const {
  if (done) engine_->admission.find(nonce, reply_to(std::move(done), callbacks_));
}

WaitTicket AsyncExecutor::wait(ProcedureId id, ResultCallback done) const {
  if (!done) return {};
  return {id, engine_->results.wait(id, reply_to(std::move(done), callbacks_))};
}

bool AsyncExecutor::withdraw(const WaitTicket& ticket) const {
  return ticket.number != 0 && engine_->results.withdraw(ticket.id, ticket.number);
}

void AsyncExecutor::acknowledge(ProcedureId id, StatusCallback done) const {
  engine_->results.acknowledge(id, reply_to(std::move(done), callbacks_));
}

void AsyncExecutor::abort(ProcedureId id, AbortOptions options, StatusCallback done) const {
  engine_->messages.abort(id, std::move(options), reply_to(std::move(done), callbacks_));
}

void AsyncExecutor::signal(ProcedureId id, std::string name, std::string payload,
                           StatusCallback done) const {
  engine_->messages.signal(id, std::move(name), std::move(payload),
                           reply_to(std::move(done), callbacks_));
}

void AsyncExecutor::run(std::function<void()> work) const {
  if (work) engine_->core.pool->post([work = std::move(work)] { call_back(work); });
}

}  // namespace pv2
