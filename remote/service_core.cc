// SPDX-License-Identifier: Apache-2.0
//
// Why a call is failed or refused is in executor_service.h.

#include "service_core.h"

#include <fmt/format.h>
#include <pv2/engine/async_executor.h>
#include <pv2/engine/inspection.h>
#include <pv2/engine/operator_console.h>
#include <pv2/engine/procedure_executor.h>

#include <algorithm>
#include <utility>

#include "listing_messages.h"
#include "operator_messages.h"
#include "order_call.h"
#include "refusal.h"
#include "verb_messages.h"

namespace pv2 {
namespace {

// A page of a listing: a client that wants more asks again.
constexpr std::size_t kPageMax = 1000;
constexpr std::size_t kPageUsual = 100;

// The message of a call. nullopt: it has none, and was told so.
template <class Message>
std::optional<Message> read(IncomingCall& call) {
  auto message = remote::from_bytes<Message>(call.body());
  if (message.ok()) return *std::move(message);
  call.fail(
      Status(StatusCode::kInvalidArgument, fmt::format("the body of '{}' cannot be read: {}",
                                                       call.method(), message.status().message())));
  return std::nullopt;
}

std::string to_bytes(const Submitted& submitted) {
  return remote::to_bytes(
      remote::SubmittedMessage{.id = submitted.id, .replayed = submitted.replayed});
}

}  // namespace

ServiceCore::ServiceCore(ProcedureExecutor& executor, ExecutorServiceOptions options)
    : executor_(executor),
      answer_bytes_max_(options.answer_bytes_max),
      clock_(options.clock != nullptr ? options.clock : std::make_shared<SystemClock>()),
      waits_(std::make_shared<RemoteWaits>(executor, options.answer_bytes_max)),
      signals_(std::make_shared<SignalDesk>(
          executor, NonceManagerOptions{.clock = std::move(options.clock),
                                        .retention = options.signal_retention,
                                        .bytes_max = options.signal_bytes_max})) {}

RpcHandler ServiceCore::method(Verb verb) {
  return [self = shared_from_this(), verb](IncomingCall call) {
    auto shared = std::make_shared<IncomingCall>(std::move(call));
    self->executor_.async().run(
        [self, verb, shared = std::move(shared)] { (self.get()->*verb)(shared); });
  };
}

// Another attempt would have the same answer, so it is one for good.
void ServiceCore::reply(IncomingCall& call, std::string body) const {
  if (body.size() <= answer_bytes_max_) return call.reply(std::move(body));
  call.fail(
      Status(StatusCode::kNotSupported, fmt::format("the answer takes {} bytes, and may take {} "
                                                    "(ExecutorServiceOptions::answer_bytes_max)",
                                                    body.size(), answer_bytes_max_)));
}

void ServiceCore::submit(Call call) {
  auto message = read<remote::SubmitMessage>(*call);
  if (!message) return;
  SubmitOptions options{.nonce = call->nonce(),
                        .expires_at = call->expires_at(),
                        .owner = std::string(call->caller()),
                        .delay = message->delay,
                        .start_at = message->start_at};
  executor_.async().submit_encoded(
      message->type, message->arguments, std::move(options),
      [self = shared_from_this(), call](const Result<Submitted>& submitted) {
        if (submitted.ok()) return call->reply(to_bytes(*submitted));
        const Status why = submitted.status();
        why.code() == StatusCode::kKeyReused ? call->fail(why)
                                             : refuse(self->executor_, *call, why);
      });
}

void ServiceCore::find(Call call) {
  const auto message = read<remote::NonceMessage>(*call);
  if (!message) return;
  executor_.async().find(Nonce{message->group, message->value},
                         [self = shared_from_this(), call](const Result<Submitted>& found) {
                           if (found.ok()) return call->reply(to_bytes(*found));
                           refuse(self->executor_, *call, found.status());
                         });
}

void ServiceCore::wait(Call call) {
  const auto message = read<remote::IdMessage>(*call);
  if (message) waits_->add(message->id, std::move(call));
}

void ServiceCore::acknowledge(Call call) {
  const auto message = read<remote::IdMessage>(*call);
  if (!message) return;
  executor_.async().acknowledge(message->id,
                                [self = shared_from_this(), call](const Status& answer) {
                                  if (answer.ok()) return call->reply({});
                                  refuse(self->executor_, *call, answer);
                                });
}

void ServiceCore::abort(Call call) {
  auto message = read<remote::AbortMessage>(*call);
  if (!message) return;
  if (!call->caller().empty()) message->who = call->caller();
  AbortOptions options{.reason = std::move(message->reason), .who = std::move(message->who)};
  const ProcedureId id = message->id;
  executor_.async().abort(id, std::move(options),
                          [self = shared_from_this(), id, call](const Status& answer) {
                            if (answer.ok())
                              return call->reply(remote::to_bytes(remote::AbortedMessage()));
                            if (answer.code() == StatusCode::kFailedPrecondition) {
                              return self->refuse_abort(id, call, answer);
                            }
                            refuse(self->executor_, *call, answer);
                          });
}

// An earlier copy of this call may have aborted a root that has ended since. Its result says so.
void ServiceCore::refuse_abort(ProcedureId id, const Call& call, const Status& why) {
  const WaitTicket ticket = executor_.async().wait(
      id, [self = shared_from_this(), call, why](const Result<ProcedureResult>& ended) {
        if (ended.ok() && ended->status.code() == StatusCode::kAborted) {
          return call->reply(remote::to_bytes(remote::AbortedMessage{.had_ended = true}));
        }
        refuse(self->executor_, *call, why);
      });
  // It has not ended, and nobody else answers the call.
  if (executor_.async().withdraw(ticket)) refuse(executor_, *call, why);
}

void ServiceCore::signal(Call call) {
  auto message = read<remote::SignalMessage>(*call);
  if (message) signals_->take(std::move(call), *std::move(message));
}

void ServiceCore::tell_run(Call call) {
  call->reply(remote::to_bytes(remote::RunMessage{.run = signals_->run()}));
}

// The thread of the transport must not wait until the store is loaded.
bool ServiceCore::is_loading(IncomingCall& call) const {
  if (!executor_.is_loading()) return false;
  call.refuse(Status(StatusCode::kUnavailable,
                     "the store of the executor is still being loaded; try again"));
  return true;
}

void ServiceCore::list(Call call) {
  if (is_loading(*call)) return;
  const auto message = read<remote::ListMessage>(*call);
  if (!message) return;
  const std::size_t limit =
      message->limit == 0 ? kPageUsual : std::min<std::size_t>(message->limit, kPageMax);
  call->reply(remote::to_bytes_within(
      executor_.inspect().list(message->filter, message->after, limit), answer_bytes_max_));
}

void ServiceCore::explain(Call call) {
  if (is_loading(*call)) return;
  const auto message = read<remote::IdMessage>(*call);
  if (!message) return;
  auto explanation = executor_.inspect().explain(message->id);
  if (!explanation.ok()) return refuse(executor_, *call, explanation.status());
  reply(*call, remote::to_bytes(remote::ExplanationMessage{*std::move(explanation)}));
}

void ServiceCore::history(Call call) {
  if (is_loading(*call)) return;
  const auto message = read<remote::IdMessage>(*call);
  if (!message) return;
  auto history = executor_.inspect().history(message->id);
  if (!history.ok()) return refuse(executor_, *call, history.status());
  reply(*call, remote::to_bytes(remote::HistoryListMessage{
                   remote::to_messages<remote::HistoryMessage>(*std::move(history))}));
}

void ServiceCore::locks(Call call) {
  if (is_loading(*call)) return;
  call->reply(remote::to_bytes_within(executor_.inspect().locks(), clock_->steady_now(),
                                      answer_bytes_max_));
}

void ServiceCore::preview(Call call) {
  if (is_loading(*call)) return;
  const auto message = read<remote::OrderMessage>(*call);
  if (!message) return;
  if (const Status strange = check(*message); !strange.ok()) return call->fail(strange);
  auto lines = executor_.operate().preview(message->id, message->verb);
  if (!lines.ok()) return refuse(executor_, *call, lines.status());
  reply(*call, remote::to_bytes(remote::PreviewMessage{*std::move(lines)}));
}

void ServiceCore::order(Call call) {
  auto message = read<remote::OrderMessage>(*call);
  if (!message) return;
  if (const Status strange = check(*message); !strange.ok()) return call->fail(strange);
  if (!call->caller().empty()) message->who = call->caller();
  RepairNote note{.who = std::move(message->who),
                  .why = std::move(message->why),
                  .next_step = message->next_step};
  const OperatorConsole console = executor_.operate();
  // An older client gives none, and sends the order once. A store that keeps no records cannot tell
  // whether it was carried out before, so a copy is a new order there.
  if (!call->nonce() || !console.keeps_nonces()) {
    return console.order(message->id, message->verb, std::move(note),
                         [self = shared_from_this(), call](const Status& answer) {
                           if (answer.ok()) return call->reply({});
                           refuse(self->executor_, *call, answer);
                         });
  }
  std::make_shared<OrderCall>(executor_)->begin(call, message->id, message->verb, std::move(note));
}

void ServiceCore::audit(Call call) {
  if (is_loading(*call)) return;
  const auto message = read<remote::AuditQueryMessage>(*call);
  if (!message) return;
  auto entries = executor_.operate().audit(message->id);
  if (!entries.ok()) return refuse(executor_, *call, entries.status());
  reply(*call, remote::to_bytes_within(*std::move(entries), *message, answer_bytes_max_));
}

ExecutorServiceCounts ServiceCore::counts() const {
  return {.waits = waits_->calls(),
          .waited_for = waits_->procedures(),
          .signals_kept = signals_->kept()};
}

}  // namespace pv2
