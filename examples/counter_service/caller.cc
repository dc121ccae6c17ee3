// SPDX-License-Identifier: Apache-2.0
//
// What all ways have in common: which outcomes of a call are outcomes of the operation.

#include "caller.h"

#include "engine_caller.h"
#include "nonce_caller.h"
#include "session_caller.h"

namespace counter {
namespace {

using Kind = pv2::CallOutcome::Kind;

// Nobody has refused the operation: the time was over, or the server had none for it.
bool may_pass(pv2::StatusCode code) {
  switch (code) {
    case pv2::StatusCode::kDeadlineExceeded:
    case pv2::StatusCode::kUnavailable:
    case pv2::StatusCode::kStopping:
    case pv2::StatusCode::kResourceExhausted:
    case pv2::StatusCode::kBusy:
    case pv2::StatusCode::kUnknownOutcome:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string_view to_string(Way way) noexcept {
  switch (way) {
    case Way::kNonce:
      return "nonce";
    case Way::kSession:
      return "session";
    case Way::kEngine:
      return "engine";
  }
  return "?";
}

std::string_view meaning(Way way) noexcept {
  switch (way) {
    case Way::kNonce:
      return "each operation has a number that the client chose before it first asked";
    case Way::kSession:
      return "each operation is a numbered request of a session";
    case Way::kEngine:
      return "each operation is a procedure, submitted to an executor under a number";
  }
  return "?";
}

bool Caller::has_to_ask_again(const pv2::CallOutcome& outcome) {
  if (has_ended_ || outcome.ok() || !may_pass(outcome.status.code())) return false;
  if (outcome.kind == Kind::kUnknown) ++asked_again_;
  return true;
}

pv2::Result<std::unique_ptr<Caller>> make_caller(Way way, Dedup dedup, pv2::RpcClient& client) {
  switch (way) {
    case Way::kNonce:
      return std::unique_ptr<Caller>(std::make_unique<NonceCaller>(client));
    case Way::kSession:
      return SessionCaller::open(client);
    case Way::kEngine:
      return std::unique_ptr<Caller>(std::make_unique<EngineCaller>(client, dedup));
  }
  return pv2::Status(pv2::StatusCode::kInvalidArgument, "there is no such way");
}

}  // namespace counter
