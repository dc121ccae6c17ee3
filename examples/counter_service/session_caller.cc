// SPDX-License-Identifier: Apache-2.0
//
// Asks under one number until there is an outcome. A request that was not admitted to the window in
// time has no number yet, and was never sent.

#include "session_caller.h"

#include <cstdint>
#include <utility>

namespace counter {
namespace {

// The server's largest. The oldest request without an answer holds up what is behind the window, so
// a small one would make the slowest call the speed of all.
constexpr std::uint32_t kWindow = 512;

}  // namespace

struct SessionCaller::Operation {
  std::string method;
  std::string body;
  pv2::CallDone done;
  std::uint64_t number = 0;
};

pv2::Result<std::unique_ptr<Caller>> SessionCaller::open(pv2::RpcClient& client) {
  auto session = pv2::RpcSession::open(client, {.window = kWindow});
  if (!session.ok()) return session.status();
  return std::unique_ptr<Caller>(new SessionCaller(*std::move(session)));
}

void SessionCaller::add(const AddRequest& request, pv2::CallDone done) {
  begin("session.counter.add", to_body(request), std::move(done));
}

void SessionCaller::append(const AppendRequest& request, pv2::CallDone done) {
  begin("session.text.append", to_body(request), std::move(done));
}

void SessionCaller::begin(std::string method, std::string body, pv2::CallDone done) {
  auto operation = std::make_shared<Operation>();
  operation->method = std::move(method);
  operation->body = std::move(body);
  operation->done = std::move(done);
  ask(operation);
}

void SessionCaller::end() {
  Caller::end();
  session_.reset();  // before the RpcClient that it uses
}

void SessionCaller::ask(const std::shared_ptr<Operation>& operation) {
  const pv2::CallOptions options{.timeout = kCallTimeout};
  auto done = [this, operation](pv2::SessionOutcome ended) {
    if (!has_to_ask_again(ended.outcome)) return operation->done(std::move(ended.outcome));
    // Unknown: the same number again. Not done: its number is used up, and the next call gets one.
    const bool is_unknown = ended.outcome.kind == pv2::CallOutcome::Kind::kUnknown;
    operation->number = is_unknown ? ended.number : 0;
    ask(operation);
  };
  if (operation->number == 0) {
    session_->call(operation->method, operation->body, options, std::move(done));
  } else {
    session_->ask_again(operation->number, operation->method, operation->body, options,
                        std::move(done));
  }
}

}  // namespace counter
