// SPDX-License-Identifier: Apache-2.0
//
// Two calls for each operation: the submission, under one nonce until it is known, and the wait.

#include "engine_caller.h"

#include <utility>

#include "add_to_counter.h"
#include "append_to_text.h"

namespace counter {
namespace {

using Kind = pv2::CallOutcome::Kind;

// A wait whose answer is lost is found out by asking again.
constexpr pv2::Duration kWaitAgainAfter = std::chrono::milliseconds(500);
// How long the control waits for a submission: less than two attempts take, so that it submits anew
// what the network has lost.
constexpr pv2::Duration kControlTimeout = std::chrono::milliseconds(300);

pv2::CallOutcome outcome_of(pv2::Result<pv2::ProcedureResult> result) {
  if (!result.ok()) return {.kind = Kind::kUnknown, .status = result.status()};
  if (result->state == pv2::ProcedureState::kSuccess) {
    return {.kind = Kind::kOk, .body = std::move(result->result)};
  }
  return {.kind = Kind::kFailed, .status = result->status};
}

}  // namespace

/// A procedure, and what it was submitted under.
template <class P>
struct EngineCaller::Operation {
  P procedure;
  pv2::RemoteSubmitOptions options;
  bool may_be_begun = false;
  pv2::CallDone done;
};

EngineCaller::EngineCaller(pv2::RpcClient& client, Dedup dedup)
    : executor_(client, {.timeout = kCallTimeout, .ask_again_after = kWaitAgainAfter}),
      dedup_(dedup) {}

void EngineCaller::add(const AddRequest& request, pv2::CallDone done) {
  submit(std::make_shared<Operation<AddToCounter>>(Operation<AddToCounter>{
      .procedure = AddToCounter(request), .options = {}, .done = std::move(done)}));
}

void EngineCaller::append(const AppendRequest& request, pv2::CallDone done) {
  submit(std::make_shared<Operation<AppendToText>>(Operation<AppendToText>{
      .procedure = AppendToText(request), .options = {}, .done = std::move(done)}));
}

template <class P>
void EngineCaller::submit(std::shared_ptr<Operation<P>> operation) {
  const Operation<P>& it = *operation;
  const bool is_new = it.options.nonce.value == 0 || dedup_ == Dedup::kOff;
  if (is_new) operation->options.nonce = nonces_.next();
  operation->options.timeout = dedup_ == Dedup::kOn ? kCallTimeout : kControlTimeout;
  auto done = [this, operation](pv2::SubmitOutcome outcome) {
    submitted(operation, std::move(outcome));
  };
  if (it.may_be_begun && dedup_ == Dedup::kOn) {
    executor_.resume(it.options.nonce, it.procedure, it.options, std::move(done));
  } else {
    executor_.submit(it.procedure, it.options, std::move(done));
  }
}

template <class P>
void EngineCaller::submitted(std::shared_ptr<Operation<P>> operation, pv2::SubmitOutcome outcome) {
  if (outcome.ok()) {
    return wait(outcome.id, std::make_shared<pv2::CallDone>(std::move(operation->done)));
  }
  const pv2::CallOutcome told{.kind = outcome.kind, .status = outcome.status};
  if (!has_to_ask_again(told)) return operation->done(told);
  operation->may_be_begun |= outcome.kind == Kind::kUnknown;
  submit(std::move(operation));
}

void EngineCaller::wait(pv2::ProcedureId id, std::shared_ptr<pv2::CallDone> done) {
  executor_.wait(id, kCallTimeout, [this, id, done](pv2::Result<pv2::ProcedureResult> result) {
    const pv2::CallOutcome outcome = outcome_of(std::move(result));
    if (!has_to_ask_again(outcome)) return (*done)(outcome);
    wait(id, done);
  });
}

}  // namespace counter
