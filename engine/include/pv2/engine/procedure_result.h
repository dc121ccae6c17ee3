// SPDX-License-Identifier: Apache-2.0
//
// What an executor answers: to a submission, and at the end of a procedure. Plain data, and the
// callbacks that take it.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/procedure_state.h>
#include <pv2/base/status.h>

#include <functional>
#include <string>

namespace pv2 {

/// The answer to a submission.
struct Submitted {
  ProcedureId id;
  bool replayed = false;  ///< The nonce was known: nothing new was started.
};

/// How a procedure ended.
struct ProcedureResult {
  ProcedureId id;
  ProcedureState state = ProcedureState::kSuccess;  ///< kSuccess or kRolledBack.
  Status status;                                    ///< Why it was undone; OK for a success.
  std::string result;                               ///< What the procedure gave to done().
  /// kRolledBack, but not everything was undone: an operator ended the tree as it stood (bypass()),
  /// or sent it back from beyond a point of no return (fail_and_roll_back()). If that happened to a
  /// child whose failure was reported, audit() of the root says so, and this does not.
  bool bypassed = false;
  WallTime submitted{};
  WallTime finished{};
};

/// Names a wait that was begun with AsyncExecutor::wait(), to take it back.
struct WaitTicket {
  ProcedureId id;
  std::uint64_t number = 0;  ///< 0: the answer was on its way at once.
};

/// Take the answer of an asynchronous verb.
using SubmitCallback = std::function<void(Result<Submitted>)>;
using ResultCallback = std::function<void(Result<ProcedureResult>)>;
using StatusCallback = std::function<void(Status)>;

}  // namespace pv2
