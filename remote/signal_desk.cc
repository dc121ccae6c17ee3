// SPDX-License-Identifier: Apache-2.0
//
// A signal that was sent, and one that never can be, are remembered. What may pass is not: the same
// nonce may try again. If the store fails meanwhile, the outcome stays unknown.

#include "signal_desk.h"

#include <fmt/format.h>
#include <pv2/engine/async_executor.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/idempotency/fingerprint.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "refusal.h"
#include "verb_messages.h"

namespace pv2 {
namespace {

// A signal that is taken sweeps more nonces than it adds, so they do not pile up.
constexpr std::size_t kSweptAtOnce = 16;

std::uint64_t random_run() {
  std::random_device system;
  const std::uint64_t run = (std::uint64_t{system()} << 32) | system();
  return run != 0 ? run : 1;
}

void tell(IncomingCall& call, const Status& answer) {
  answer.ok() ? call.reply({}) : call.fail(answer);
}

}  // namespace

// A call with the right to send its signal. Without a verdict its outcome is unknown.
struct SignalDesk::Errand {
  std::shared_ptr<SignalDesk> desk;  // outlives `owner`
  std::shared_ptr<IncomingCall> call;
  NonceOwner owner;
};

SignalDesk::SignalDesk(ProcedureExecutor& executor, NonceManagerOptions options)
    : executor_(executor), run_(random_run()), nonces_(std::move(options)) {}

void SignalDesk::take(std::shared_ptr<IncomingCall> call, remote::SignalMessage signal) {
  if (signal.run != run_) {
    return call->refuse(
        Status(StatusCode::kFenced,
               "the signal was meant for another run of this service, which may have sent it"));
  }
  if (call->nonce() && !call->expires_at()) {
    return call->fail(
        Status(StatusCode::kInvalidArgument,
               "a signal with a nonce needs a time after which it is not sent (expires_at)"));
  }
  sweep();
  const NonceRequest request{
      .nonce = call->nonce(),
      .fingerprint = fingerprint_of({remote::kSignal, std::to_string(signal.id.value), signal.name,
                                     signal.payload, std::string(call->caller())}),
      .expires_at = call->expires_at()};
  nonces_.begin_async(request, [self = shared_from_this(), call = std::move(call),
                                signal = std::move(signal)](Result<NonceAnswer> answer) {
    if (!answer.ok()) {
      const bool is_for_good = answer.status().code() == StatusCode::kKeyReused;
      return is_for_good ? call->fail(answer.status()) : call->refuse(answer.status());
    }
    if (answer->runs()) {
      auto errand = std::make_shared<Errand>(Errand{self, call, std::move(answer->owner)});
      return self->send(std::move(errand), signal);
    }
    const auto saved = remote::from_bytes<remote::StatusMessage>(*answer->result);
    tell(*call, saved.ok() ? saved->status() : saved.status());
  });
}

void SignalDesk::send(std::shared_ptr<Errand> errand, remote::SignalMessage signal) {
  executor_.async().signal(
      signal.id, std::move(signal.name), std::move(signal.payload),
      [errand = std::move(errand)](const Status& answer) { errand->desk->sent(*errand, answer); });
}

void SignalDesk::sent(Errand& errand, const Status& answer) const {
  if (answer.code() == StatusCode::kUnknownOutcome) {
    { const NonceOwner silent = std::move(errand.owner); }
    return errand.call->refuse(answer);
  }
  if (may_pass(executor_, answer)) {
    errand.owner.fail();
    return refuse(executor_, *errand.call, answer);
  }
  errand.owner.succeed(remote::to_bytes(remote::StatusMessage(answer)));
  tell(*errand.call, answer);
}

void SignalDesk::sweep() {
  const MutexLock lock(sweep_mutex_);
  const std::vector<Nonce> over = nonces_.expired(kSweptAtOnce);
  if (!over.empty()) nonces_.forget(over);
}

std::size_t SignalDesk::kept() const {
  const NonceCounts counts = nonces_.counts();
  return counts.running + counts.succeeded + counts.unknown;
}

}  // namespace pv2
