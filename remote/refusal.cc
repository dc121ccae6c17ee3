// SPDX-License-Identifier: Apache-2.0
//
// After a store failure the engine answers with the code of that failure, which says nothing about
// the operation that was asked for.

#include "refusal.h"

#include <pv2/engine/procedure_executor.h>
#include <pv2/rpc/incoming_call.h>

#include <string>

namespace pv2 {
namespace {

bool is_by_store_failure(const ProcedureExecutor& executor, const Status& why) {
  if (why.code() == StatusCode::kUnknownOutcome) return false;  // it was on its way
  const Status health = executor.health();
  return !health.ok() && health == why;
}

}  // namespace

void refuse(const ProcedureExecutor& executor, IncomingCall& call, const Status& why) {
  if (!is_by_store_failure(executor, why)) return call.refuse(why);
  call.refuse(Status(StatusCode::kUnavailable,
                     "the store of the executor has failed: " + std::string(why.message())));
}

bool may_pass(const ProcedureExecutor& executor, const Status& why) {
  switch (why.code()) {
    case StatusCode::kUnavailable:
    case StatusCode::kStopping:
    case StatusCode::kResourceExhausted:
      return true;
    default:
      return is_by_store_failure(executor, why);
  }
}

}  // namespace pv2
