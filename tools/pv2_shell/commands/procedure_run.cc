// SPDX-License-Identifier: Apache-2.0
//
// The crash points: whatever dies between the first send and the last answer (the connection, the
// master, the shell's user's patience), the nonce was chosen before, so either the same call goes
// on, or the answer has the statement that asks again.

#include "commands/procedure_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "commands/procedure_progress.h"
#include "output/duration.h"

namespace pv2::shell {
namespace {

Answer unknown_submission(const Call& call, const Nonce& nonce, const Status& why) {
  Answer answer;
  answer.outcome = Outcome::kUnknown;
  answer.status = why;
  answer.nonce = nonce;
  answer.again = call.resume(nonce, std::nullopt);
  return answer;
}

Answer ended(const ProcedureResult& result) {
  Answer answer;
  if (!result.status.ok()) {
    answer = Answer(result.status);
    if (result.bypassed) answer.note("an operator ended it: not all that it did was undone");
  } else {
    answer.note(fmt::format("procedure {} has succeeded in {}{}", result.id.value,
                            in_words(result.finished - result.submitted),
                            result.result.empty() ? "" : ": " + result.result));
  }
  answer.procedure = result.id;
  return answer;
}

Result<ProcedureId> find_by_nonce(Shell& shell, const Call& call) {
  return shell.ask<ProcedureId>(
      [&](FoundDone done) { return shell.executor().find(call.identity.nonce, std::move(done)); },
      call.timeout(Shell::kCallTime));
}

Answer still_running(ProcedureId id, const Status& why) {
  Answer answer;
  answer.outcome = Outcome::kRunning;
  answer.status = Status(why.code(), fmt::format("procedure {} goes on; the shell does not wait "
                                                 "for it any longer",
                                                 id.value));
  answer.procedure = id;
  answer.again = fmt::format("wait {}", id.value);
  return answer;
}

// The end of a procedure that is not live, for a wait that had no time to hear of it. nullopt: it
// lives, or nobody says so in time.
std::optional<Answer> look_for_end(Shell& shell, ProcedureId id) {
  constexpr Duration kLookTime = std::chrono::seconds(2);
  const auto live = shell.ask<ProcedurePage>(
      [&](PageDone done) { return shell.executor().list({.root = id}, {}, 1, std::move(done)); },
      kLookTime);
  if (!live.ok() || !live->procedures.empty()) return std::nullopt;
  const auto result = shell.ask<ProcedureResult>(
      [&](ResultCallback done) { return shell.executor().wait(id, kLookTime, std::move(done)); },
      kLookTime);
  if (result.ok()) return ended(*result);
  const StatusCode code = result.status().code();
  if (code == StatusCode::kNotFound || code == StatusCode::kExpired) return result.status();
  return std::nullopt;
}

// A server that refuses at once is asked again after so long.
constexpr Duration kPause = std::chrono::milliseconds(100);

// Returns false if Ctrl-C was typed.
bool pause(Shell& shell) {
  const Result<bool> never = shell.wait_for<bool>([](const auto& /*done*/) {}, kPause);
  return never.status().code() == StatusCode::kDeadlineExceeded;
}

}  // namespace

std::optional<ProcedureResult> end_of(Shell& shell, ProcedureId id, const Status& refusal) {
  // Other refusals are not about procedures that have ended.
  if (refusal.code() != StatusCode::kFailedPrecondition &&
      refusal.code() != StatusCode::kNotFound) {
    return std::nullopt;
  }
  constexpr Duration kLookTime = std::chrono::seconds(2);
  auto result = shell.ask<ProcedureResult>(
      [&](ResultCallback done) { return shell.executor().wait(id, kLookTime, std::move(done)); },
      kLookTime);
  return result.ok() ? std::optional(*std::move(result)) : std::nullopt;
}

Answer ask_until_known(Shell& shell, const Call& call, const AskAgain& ask,
                       const std::string& done_text) {
  const SteadyTime end = later(shell.now(), call.timeout(Shell::kCallTime));
  Answer answer;
  bool was_sent = false;
  while (true) {
    const Duration left = std::max(end - shell.now(), Duration::zero());
    const Result<RemoteOutcome> outcome = shell.wait_for<RemoteOutcome>(
        [&](RemoteOutcomeDone done) { return ask(left, std::move(done)); }, left);
    const bool is_known = outcome.ok() && outcome->kind != RemoteOutcome::Kind::kUnknown;
    if (is_known && outcome->ok()) {
      answer = said(done_text);
      break;
    }
    answer = Answer(outcome.ok() ? outcome->status : outcome.status());
    // A refusal says nothing about what was sent before.
    if (is_known && !was_sent) break;
    was_sent = true;
    answer.outcome = Outcome::kUnknown;
    answer.again = to_text(call.statement);
    if (is_known || !outcome.ok() || shell.now() >= end || !pause(shell)) break;
  }
  answer.procedure = call.procedure(0);
  return answer;
}

std::string short_type(const std::string& type) { return type.substr(type.find('.') + 1); }

Answer follow(Shell& shell, const Call& call, ProcedureId id) {
  const Duration timeout = call.timeout(Shell::kProcedureTime);
  ProcedureProgress progress(shell, id);
  const Result<Result<ProcedureResult>> result = shell.wait_for<Result<ProcedureResult>>(
      [&](ResultCallback done) { return shell.executor().wait(id, timeout, std::move(done)); },
      timeout, [&progress] { progress.look(); });
  shell.progress().clear();
  const Status why = result.ok() ? result->status() : result.status();
  if (why.ok()) return ended(**result);
  if (why.code() == StatusCode::kNotFound || why.code() == StatusCode::kExpired) return why;
  if (why.code() == StatusCode::kDeadlineExceeded) {
    if (auto over = look_for_end(shell, id)) return *std::move(over);
  }
  return still_running(id, why);
}

std::optional<Answer> follow_known(Shell& shell, const Call& call) {
  const Result<ProcedureId> known = find_by_nonce(shell, call);
  if (known.ok()) {
    Answer answer = follow(shell, call, *known);
    answer.nonce = call.identity.nonce;
    return answer;
  }
  if (known.status().code() == StatusCode::kNotFound) return std::nullopt;
  return unknown_submission(call, call.identity.nonce, known.status());
}

Accepted submit_procedure(Shell& shell, const Call& call, const Submission& submission) {
  Accepted accepted{.nonce = call.identity.nonce ? call.identity.nonce : shell.next_nonce()};
  const Duration timeout = call.timeout(Shell::kProcedureTime);
  const Result<SubmitOutcome> sent = shell.wait_for<SubmitOutcome>(
      [&](SubmitOutcomeDone done) {
        return submission(shell.executor(), {.nonce = accepted.nonce, .timeout = timeout},
                          call.identity.resumed, std::move(done));
      },
      timeout, [&shell] { shell.progress().show("waits for the master to accept the procedure"); });
  if (sent.ok() && sent->ok()) {
    accepted.id = sent->id;
  } else if (sent.ok() && sent->kind == SubmitOutcome::Kind::kFailed) {
    if (sent->status.code() == StatusCode::kKeyReused && call.identity.resumed) {
      // The first send came in just now, and what its arguments are made of has changed since.
      const Result<ProcedureId> known = find_by_nonce(shell, call);
      if (known.ok()) {
        accepted.id = *known;
        return accepted;
      }
    }
    accepted.answer = Answer(sent->status);
    accepted.answer.nonce = accepted.nonce;
  } else {
    accepted.answer =
        unknown_submission(call, accepted.nonce, sent.ok() ? sent->status : sent.status());
  }
  return accepted;
}

Answer run_procedure(Shell& shell, const Call& call, const Submission& submission) {
  Accepted accepted = submit_procedure(shell, call, submission);
  if (!accepted.id) return std::move(accepted.answer);
  Answer answer;
  if (call.flag("ASYNC")) {
    answer = said(fmt::format("procedure {} is accepted", accepted.id.value));
    answer.procedure = accepted.id;
  } else {
    answer = follow(shell, call, accepted.id);
  }
  answer.nonce = accepted.nonce;
  return answer;
}

}  // namespace pv2::shell
