// SPDX-License-Identifier: Apache-2.0
//
// CopyCall: the control. It has the verbs of pv2::OnceCall, and none of its memory: a handler that
// is given this runs each copy of a call that comes. With it the checker has to find something.

#pragma once

#include <pv2/base/status.h>
#include <pv2/idempotency/client_sessions.h>
#include <pv2/rpc/incoming_call.h>
#include <pv2/rpc/rpc_server.h>

#include <functional>
#include <memory>
#include <utility>

namespace counter {

/// As pv2::OnceCall: copyable, ended once, from any thread.
class CopyCall {
 public:
  explicit CopyCall(pv2::IncomingCall call)
      : state_(std::make_shared<State>(std::move(call), pv2::Response(std::string()))) {}

  [[nodiscard]] const pv2::IncomingCall& call() const noexcept { return state_->call; }
  void save(pv2::RowBatch& /*effect*/, pv2::Response outcome) {
    state_->outcome = std::move(outcome);
  }
  void committed(const pv2::Status& status) {
    if (!status.ok()) return state_->call.refuse(status);
    if (state_->outcome.ok()) return state_->call.reply(*state_->outcome);
    state_->call.fail(state_->outcome.status());
  }
  void refuse(const pv2::Status& why) { state_->call.refuse(why); }

 private:
  struct State {
    State(pv2::IncomingCall incoming, pv2::Response empty)
        : call(std::move(incoming)), outcome(std::move(empty)) {}
    pv2::IncomingCall call;
    pv2::Response outcome;
  };
  std::shared_ptr<State> state_;
};

/// A handler that gives `run` each copy.
[[nodiscard]] inline pv2::RpcHandler each_copy(std::function<void(CopyCall)> run) {
  return [run = std::move(run)](pv2::IncomingCall call) { run(CopyCall(std::move(call))); };
}

}  // namespace counter
