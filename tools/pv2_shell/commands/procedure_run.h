// SPDX-License-Identifier: Apache-2.0
//
// Runs a procedure for a statement: submits it under a nonce that was chosen before, asks again
// under that nonce until the submission is certain, and follows the procedure to its end.

#pragma once

#include <pv2/remote/remote_executor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "commands/call.h"
#include "output/answer.h"
#include "session/shell.h"

namespace pv2::shell {

/// Sends one procedure, once or again, and calls back when its submission has an outcome.
using Submission =
    std::function<CallTicket(RemoteExecutor& executor, const RemoteSubmitOptions& options,
                             bool resumed, SubmitOutcomeDone done)>;

/// To be sent once by one run_procedure().
template <RemotelySubmitted P>
[[nodiscard]] Submission submission_of(P procedure) {
  return [kept = std::make_shared<P>(std::move(procedure))](RemoteExecutor& executor,
                                                            const RemoteSubmitOptions& options,
                                                            bool resumed, SubmitOutcomeDone done) {
    return resumed ? executor.resume(options.nonce, *kept, options, std::move(done))
                   : executor.submit(*kept, options, std::move(done));
  };
}

/// The first half: the procedure that was accepted, or why there is none.
struct Accepted {
  ProcedureId id{};  ///< Set if it was accepted.
  Answer answer{};   ///< Else: failed, or unknown.
  Nonce nonce{};
};
Accepted submit_procedure(Shell& shell, const Call& call, const Submission& submission);

/// The whole way.
Answer run_procedure(Shell& shell, const Call& call, const Submission& submission);

/// Waits for a procedure. The wait may be interrupted, the procedure goes on.
Answer follow(Shell& shell, const Call& call, ProcedureId id);

/// The result of a procedure, if it is because of its end that something was refused; nullopt: it
/// lives, or its result is forgotten, or nobody says so in time.
std::optional<ProcedureResult> end_of(Shell& shell, ProcedureId id, const Status& refusal);

/// Sends one call; an empty ticket says that it ends by itself when `left` is over.
using AskAgain = std::function<CallTicket(Duration left, RemoteOutcomeDone done)>;

/// Asks for something that may be done twice, in calls of at most the time that is left, until the
/// outcome is known or the time of the statement is over. `done_text` is the answer to a success.
Answer ask_until_known(Shell& shell, const Call& call, const AskAgain& ask,
                       const std::string& done_text);

/// Follows the procedure that was submitted under the nonce of the statement. nullopt: none is
/// known.
std::optional<Answer> follow_known(Shell& shell, const Call& call);

/// "CreateTable" of "cluster.CreateTable".
[[nodiscard]] std::string short_type(const std::string& type);

}  // namespace pv2::shell
