// SPDX-License-Identifier: Apache-2.0
//
// The verbs with a callback: each is one call into the part that does it, and has the host's code
// called on the pool.

#include "pv2/engine/async_executor.h"

#include <utility>

#include "executor/engine.h"

namespace pv2 {

void AsyncExecutor::submit_erased(std::string_view type, std::unique_ptr<Procedure> procedure,
                                  SubmitOptions options, SubmitCallback done) const {
  engine_->admission.submit(type, std::move(procedure), std::move(options),
                            {.reply = {std::move(done)}});
}

void AsyncExecutor::submit_encoded(std::string_view type, std::string_view arguments,
                                   SubmitOptions options, SubmitCallback done) const {
  engine_->admission.submit_encoded(type, arguments, std::move(options),
                                    {.reply = {std::move(done)}});
}

void AsyncExecutor::find(const Nonce& nonce, SubmitCallback done) const {
  if (done) engine_->admission.find(nonce, {std::move(done)});
}

WaitTicket AsyncExecutor::wait(ProcedureId id, ResultCallback done) const {
  if (!done) return {};
  return {id, engine_->results.wait(id, {std::move(done)})};
}

bool AsyncExecutor::withdraw(const WaitTicket& ticket) const {
  return ticket.number != 0 && engine_->results.withdraw(ticket.id, ticket.number);
}

void AsyncExecutor::acknowledge(ProcedureId id, StatusCallback done) const {
  engine_->results.acknowledge(id, {std::move(done)});
}

void AsyncExecutor::abort(ProcedureId id, AbortOptions options, StatusCallback done) const {
  engine_->messages.abort(id, std::move(options), {std::move(done)});
}

void AsyncExecutor::signal(ProcedureId id, std::string name, std::string payload,
                           StatusCallback done) const {
  engine_->messages.signal(id, std::move(name), std::move(payload), {std::move(done)});
}

void AsyncExecutor::run(std::function<void()> work) const {
  if (work) engine_->core.pool->post(std::move(work));
}

}  // namespace pv2
