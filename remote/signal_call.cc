// SPDX-License-Identifier: Apache-2.0
//
// A refusal by another run (kFenced) is final only if an earlier attempt, of this process or
// another, may have reached the run that is over.

#include "signal_call.h"

#include <pv2/base/assert.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

namespace pv2 {
namespace {

// A service that ends again and again, each time between the question and the signal.
constexpr int kRunsMax = 8;

// Longer than callers wait, and short enough for a service to remember all signals meanwhile.
constexpr Duration kLife = std::chrono::minutes(15);

// A nonce without its run would be sent to two runs, and one without its end to a run that has
// forgotten it: either delivers the signal twice.
Status check(const RemoteSignalOptions& options) {
  const auto missing = [](std::string_view what) {
    return Status(StatusCode::kInvalidArgument,
                  "RemoteSignalOptions: nonce, run and expires_at belong together, and " +
                      std::string(what) +
                      " is missing (RemoteExecutor::signal_run() tells the run)");
  };
  if (options.nonce && options.run == 0) return missing("run");
  if (options.nonce && !options.expires_at) return missing("expires_at");
  if (!options.nonce && options.run != 0) return missing("nonce");
  return {};
}

}  // namespace

Result<std::uint64_t> RemoteExecutor::Shared::take_run(const CallOutcome& outcome) {
  if (!outcome.ok()) return outcome.status;
  const auto message = remote::from_bytes<remote::RunMessage>(outcome.body);
  if (!message.ok() || message->run == 0) {
    return Status(StatusCode::kNotSupported, "the server does not say which run it is");
  }
  run.store(message->run, std::memory_order_relaxed);
  return message->run;
}

RemoteExecutor::SignalCall::SignalCall(Shared& shared, remote::SignalMessage signal,
                                       const RemoteSignalOptions& options)
    : shared_(shared),
      signal_(std::move(signal)),
      options_(options),
      nonce_(options.nonce ? options.nonce : shared.nonces.next()),
      expires_at_(options.expires_at.value_or(later(shared.clock->wall_now(), kLife))),
      deadline_(later(shared.client.transport().clock().steady_now(),
                      std::max(options.timeout, Duration::zero()))) {
  signal_.run = is_kept() ? options.run : shared.run.load(std::memory_order_relaxed);
  if (Status wrong = check(options); !wrong.ok()) end(CallOutcome::Kind::kFailed, std::move(wrong));
}

Duration RemoteExecutor::SignalCall::time_left() const {
  if (deadline_ == SteadyTime::max()) return Duration::max();
  return std::max(deadline_ - shared_.client.transport().clock().steady_now(), Duration::zero());
}

RemoteExecutor::SignalCall::Request RemoteExecutor::SignalCall::next() {
  asks_for_run_ = signal_.run == 0;
  if (asks_for_run_) {
    return {.method = std::string(remote::kRun),
            .body = {},
            .options = {.read_only = true, .timeout = time_left()}};
  }
  return {.method = std::string(remote::kSignal),
          .body = remote::to_bytes(signal_),
          .options = {.nonce = nonce_,
                      .resumed = is_kept(),
                      .expires_at = expires_at_,
                      .timeout = time_left()}};
}

void RemoteExecutor::SignalCall::take(const CallOutcome& outcome) {
  if (asks_for_run_) return take_run(outcome);
  const bool is_over = outcome.kind == CallOutcome::Kind::kFailed &&
                       outcome.status.code() == StatusCode::kFenced && !is_kept();
  if (!is_over || ++runs_tried_ == kRunsMax) return end(outcome.kind, outcome.status);
  signal_.run = 0;
}

void RemoteExecutor::SignalCall::take_run(const CallOutcome& outcome) {
  PV2_ASSERT(!is_kept(), "a signal whose run the caller has given asks for no run");
  const auto told = shared_.take_run(outcome);
  // Nothing was sent that could have had an effect: this signal has a nonce of its own, and each
  // run that it was sent to has refused it.
  if (!told.ok()) return end(CallOutcome::Kind::kFailed, told.status());
  signal_.run = *told;
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
