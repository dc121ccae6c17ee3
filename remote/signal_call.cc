// SPDX-License-Identifier: Apache-2.0
//
// A refusal by another run (kFenced) is only final if an earlier attempt may have reached the run
// that is over.

#include "signal_call.h"

#include <chrono>
#include <utility>

namespace pv2 {
namespace {

// A service that ends again and again, each time between the question and the signal.
constexpr int kRunsMax = 8;

// Longer than callers wait, and short enough for a service to remember all signals meanwhile.
constexpr Duration kLife = std::chrono::minutes(15);

}  // namespace

RemoteExecutor::SignalCall::SignalCall(Shared& shared, remote::SignalMessage signal,
                                       const RemoteSignalOptions& options)
    : shared_(shared),
      signal_(std::move(signal)),
      options_(options),
      nonce_(options.nonce ? options.nonce : shared.nonces.next()),
      expires_at_(options.expires_at.value_or(later(shared.clock->wall_now(), kLife))) {
  signal_.run = options.run != 0 ? options.run : shared.run.load(std::memory_order_relaxed);
}

RemoteExecutor::SignalCall::Request RemoteExecutor::SignalCall::next() {
  asks_for_run_ = signal_.run == 0;
  if (asks_for_run_) {
    return {.method = std::string(remote::kRun),
            .body = {},
            .options = {.read_only = true, .timeout = options_.timeout}};
  }
  return {.method = std::string(remote::kSignal),
          .body = remote::to_bytes(signal_),
          .options = {.nonce = nonce_,
                      .resumed = options_.run != 0,
                      .expires_at = expires_at_,
                      .timeout = options_.timeout}};
}

void RemoteExecutor::SignalCall::take(const CallOutcome& outcome) {
  if (asks_for_run_) return take_run(outcome);
  const bool is_over = outcome.kind == CallOutcome::Kind::kFailed &&
                       outcome.status.code() == StatusCode::kFenced && options_.run == 0;
  if (!is_over || ++runs_tried_ == kRunsMax) return end(outcome.kind, outcome.status);
  signal_.run = 0;
}

void RemoteExecutor::SignalCall::take_run(const CallOutcome& outcome) {
  // Nothing was sent that could have had an effect.
  if (!outcome.ok()) return end(CallOutcome::Kind::kFailed, outcome.status);
  const auto message = remote::from_bytes<remote::RunMessage>(outcome.body);
  if (!message.ok() || message->run == 0) {
    return end(CallOutcome::Kind::kFailed,
               Status(StatusCode::kNotSupported, "the server does not say which run it is"));
  }
  signal_.run = message->run;
  shared_.run.store(message->run, std::memory_order_relaxed);
}

void RemoteExecutor::SignalCall::end(RemoteOutcome::Kind kind, Status status) {
  has_outcome_ = true;
  outcome_ = {.kind = kind,
              .status = std::move(status),
              .nonce = nonce_,
              .run = signal_.run,
              .expires_at = expires_at_};
}

void RemoteExecutor::SignalCall::run(std::shared_ptr<SignalCall> self,
                                     std::shared_ptr<Shared> shared, RemoteOutcomeDone done) {
  if (self->has_outcome()) return done(self->outcome());
  Request request = self->next();
  RpcClient& client = shared->client;
  client.call(std::move(request.method), std::move(request.body), std::move(request.options),
              [self, shared, done = std::move(done)](const CallOutcome& outcome) mutable {
                self->take(outcome);
                run(std::move(self), std::move(shared), std::move(done));
              });
}

}  // namespace pv2
