// SPDX-License-Identifier: Apache-2.0
//
// Asks under one nonce until there is an outcome.

#include "nonce_caller.h"

#include <pv2/base/clock.h>
#include <pv2/rpc/transport.h>

#include <utility>

namespace counter {

struct NonceCaller::Operation {
  std::string method;
  std::string body;
  pv2::CallOptions options;
  pv2::CallDone done;
};

void NonceCaller::add(const AddRequest& request, pv2::CallDone done) {
  begin("counter.add", to_body(request), std::move(done));
}

void NonceCaller::append(const AppendRequest& request, pv2::CallDone done) {
  begin("text.append", to_body(request), std::move(done));
}

void NonceCaller::begin(std::string method, std::string body, pv2::CallDone done) {
  auto operation = std::make_shared<Operation>();
  operation->method = std::move(method);
  operation->body = std::move(body);
  operation->options = {.nonce = nonces_.next(),
                        .expires_at = client_.transport().clock().wall_now() + kPromise,
                        .timeout = kCallTimeout};
  operation->done = std::move(done);
  ask(std::move(operation));
}

void NonceCaller::ask(std::shared_ptr<Operation> operation) {
  const Operation& it = *operation;
  client_.call(it.method, it.body, it.options, [this, operation](pv2::CallOutcome outcome) {
    if (!has_to_ask_again(outcome)) return operation->done(std::move(outcome));
    // An earlier call may have reached the server, so a refusal of the next one proves nothing.
    operation->options.resumed |= outcome.kind == pv2::CallOutcome::Kind::kUnknown;
    ask(operation);
  });
}

}  // namespace counter
