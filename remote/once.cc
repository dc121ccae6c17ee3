// SPDX-License-Identifier: Apache-2.0
//
// Asks the nonce manager or the session about a call, and either answers it or hands it to `run`.
// Their answers may come from any thread; everything else is on the loop's thread.

#include "pv2/remote/once.h"

#include <pv2/base/assert.h>
#include <pv2/idempotency/fingerprint.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "saved_response.h"

namespace pv2 {

struct OnceCall::State {
  State(IncomingCall incoming, NonceOwner nonce_owner)
      : call(std::move(incoming)), owner(std::move(nonce_owner)) {}
  State(IncomingCall incoming, RequestOwner request_owner)
      : call(std::move(incoming)), owner(std::move(request_owner)) {}

  IncomingCall call;
  std::variant<NonceOwner, RequestOwner> owner;
  std::optional<Response> outcome;
};

namespace {

void give(IncomingCall& call, const Response& outcome) {
  if (outcome.ok()) return call.reply(*outcome);
  call.fail(outcome.status());
}

/// A call whose answer from the manager or the session is awaited. Used on the loop's thread.
struct AskedCall {
  explicit AskedCall(IncomingCall incoming) : call(std::move(incoming)) {}
  std::optional<IncomingCall> call;  // none: it was answered, or is run
  bool is_asking = true;             // its handler is on the stack

  IncomingCall take() {
    IncomingCall taken = *std::move(call);
    call.reset();
    return taken;
  }
};
using Asked = std::shared_ptr<AskedCall>;

// What every copy of one call has in common, and no other call.
Hash128 fingerprint_of(const IncomingCall& call) {
  return pv2::fingerprint_of({call.method(), call.caller(), call.body()});
}

void take(const Asked& asked, Result<NonceAnswer> answer, const OnceHandler& run) {
  if (!asked->call) return;  // it was cancelled meanwhile; an owner's end is then unknown
  IncomingCall call = asked->take();
  if (!answer.ok()) return call.refuse(answer.status());
  if (answer->runs()) {
    return run(
        OnceCall(std::make_shared<OnceCall::State>(std::move(call), std::move(answer->owner))));
  }
  const auto outcome = decode_response(*answer->result);
  if (!outcome) {
    return call.refuse(
        {StatusCode::kCorruption, "the outcome that is saved under the nonce cannot be read"});
  }
  give(call, *outcome);
}

void take(const Asked& asked, SessionAnswer answer, const OnceHandler& run) {
  if (!asked->call) return;
  IncomingCall call = asked->take();
  if (answer.response != nullptr) return give(call, *answer.response);
  if (!answer.runs()) return call.refuse(answer.status);
  run(OnceCall(std::make_shared<OnceCall::State>(std::move(call), std::move(answer.owner))));
}

// What takes an answer on any thread, and goes on with it on the loop's.
template <class Answer>
std::function<void(Answer)> on_loop(Transport& transport, Asked asked,
                                    std::shared_ptr<const OnceHandler> run) {
  return [&transport, asked = std::move(asked), run = std::move(run)](Answer answer) {
    // A copy that takes over gets a turn of its own: a thousand of them, each refused within the
    // refusal of the one before, would overflow the stack.
    if (transport.on_loop() && asked->is_asking) return take(asked, std::move(answer), *run);
    const auto later = std::make_shared<Answer>(std::move(answer));
    transport.post([asked, run, later] {
      try {
        take(asked, std::move(*later), *run);
      } catch (...) {  // NOLINT(bugprone-empty-catch): the call ends as OnceHandler promises
      }
    });
  };
}

// A copy whose client has gone waits no more.
void wait_until_cancelled(const Asked& asked, std::function<bool()> cancel) {
  if (!asked->call) return;
  // Not through `asked`: the connection keeps this function as long as the call is not answered.
  asked->call->on_cancel(
      [weak = std::weak_ptr(asked), cancel = std::move(cancel)](const Status& why) {
        const Asked still = weak.lock();
        if (still != nullptr && still->call && cancel()) still->take().refuse(why);
      });
}

}  // namespace

const IncomingCall& OnceCall::call() const noexcept { return state_->call; }

void OnceCall::save(RowBatch& effect, Response outcome) {
  if (auto* nonce = std::get_if<NonceOwner>(&state_->owner)) {
    nonce->save(effect, encode_response(outcome));
  } else {
    std::get<RequestOwner>(state_->owner).save(effect, outcome);
  }
  state_->outcome.emplace(std::move(outcome));
}

void OnceCall::committed(const Status& status) {
  if (status.code() == StatusCode::kInvalidArgument) return refuse(status);
  if (status.ok() && !state_->outcome) {
    return state_->call.refuse({StatusCode::kUnknownOutcome,
                                "the operation was committed without save(): its outcome is lost"});
  }
  if (!status.ok()) {
    state_->owner = NonceOwner();  // ends without a word: unknown
    return state_->call.refuse(
        {StatusCode::kUnknownOutcome, "whether it was done is not known: " + status.to_string()});
  }
  if (auto* nonce = std::get_if<NonceOwner>(&state_->owner)) {
    nonce->succeed();
  } else {
    std::get<RequestOwner>(state_->owner).done();
  }
  give(state_->call, *state_->outcome);
}

void OnceCall::refuse(const Status& why) {
  if (auto* nonce = std::get_if<NonceOwner>(&state_->owner)) {
    nonce->fail();
    return state_->call.refuse(why);
  }
  std::get<RequestOwner>(state_->owner).refuse();
  const bool is_of_session = why.code() == StatusCode::kExpired;
  state_->call.refuse(
      is_of_session ? Status(StatusCode::kFailedPrecondition, std::string(why.message())) : why);
}

RpcHandler once_by_nonce(ServerNonceManager& nonces, Transport& transport, OnceHandler run) {
  auto shared_run = std::make_shared<const OnceHandler>(std::move(run));
  return [&nonces, &transport, run = std::move(shared_run)](IncomingCall call) {
    const NonceRequest request{.nonce = call.nonce(),
                               .fingerprint = fingerprint_of(call),
                               .expires_at = call.expires_at()};
    const auto asked = std::make_shared<AskedCall>(std::move(call));
    const std::uint64_t ticket =
        nonces.begin_async(request, on_loop<Result<NonceAnswer>>(transport, asked, run));
    asked->is_asking = false;
    if (ticket == 0) return;
    wait_until_cancelled(
        asked, [&nonces, nonce = request.nonce, ticket] { return nonces.cancel(nonce, ticket); });
  };
}

RpcHandler once_in_session(ClientSessions& sessions, Transport& transport, OnceHandler run) {
  auto shared_run = std::make_shared<const OnceHandler>(std::move(run));
  return [&sessions, &transport, run = std::move(shared_run)](IncomingCall call) {
    const SessionCall named = call.session();
    const std::string caller(call.caller());
    const SessionRequest request{.session = SessionId{named.session},
                                 .number = named.number,
                                 .first_unacked = named.first_unacked,
                                 .fingerprint = fingerprint_of(call),
                                 .owner = caller,
                                 .deadline = call.expires_at()};
    const auto asked = std::make_shared<AskedCall>(std::move(call));
    const std::uint64_t ticket =
        sessions.begin_async(request, on_loop<SessionAnswer>(transport, asked, run));
    asked->is_asking = false;
    if (ticket == 0) return;
    wait_until_cancelled(asked, [&sessions, named, ticket] {
      return sessions.cancel(SessionId{named.session}, named.number, ticket);
    });
  };
}

}  // namespace pv2
