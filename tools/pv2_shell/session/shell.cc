// SPDX-License-Identifier: Apache-2.0
//
// parse, bind, run. What a command throws is a defect of the shell, and ends the statement alone.

#include "session/shell.h"

#include <exception>

#include "commands/call.h"
#include "commands/procedure_run.h"
#include "language/parser.h"

namespace pv2::shell {
namespace {

Answer run(Shell& shell, const Call& call) {
  // What was submitted before is found by its nonce, whatever has become of the table since.
  const Command& command = *call.command;
  if (command.effect == Effect::kProcedure && command.waits_for_end && call.identity.resumed) {
    if (auto known = follow_known(shell, call)) return *std::move(known);
  }
  return call.command->run(shell, call);
}

}  // namespace

Answer Shell::answer(std::string_view line) {
  Interrupts::take();  // one that came between two statements is for neither
  try {
    const Result<Statement> statement = parse(line);
    if (!statement.ok()) return statement.status();
    if (statement->empty()) return {};
    const Result<Call> call = bind(*statement);
    if (!call.ok()) return call.status();
    Answer answer = run(*this, *call);
    answer.mark = call->mark();
    progress_.clear();
    return answer;
  } catch (const std::exception& error) {
    progress_.clear();
    return Status(StatusCode::kInternal, error.what());
  }
}

Result<cluster::ClusterProcesses*> Shell::processes() const {
  if (processes_ != nullptr) return processes_;
  return Status(StatusCode::kFailedPrecondition,
                "this shell has joined a cluster that runs elsewhere, so it cannot start or stop "
                "its processes");
}

}  // namespace pv2::shell
