// SPDX-License-Identifier: Apache-2.0
//
// Commands about locks: what is locked by whom and who waits for it, and locks that a person holds
// by a LockProcedure. Such a lock has a lease: if nobody renews it, it is given back, also when the
// shell is long gone.

#include <fmt/format.h>
#include <pv2/procedures/lock_procedure.h>

#include <algorithm>
#include <chrono>

#include "commands/call.h"
#include "commands/procedure_progress.h"
#include "commands/procedure_run.h"
#include "commands/subjects.h"
#include "output/duration.h"

namespace pv2::shell {
namespace {

using Shape = OptionSpec::Shape;

constexpr std::uint64_t kLeaseUsual = 300;  // seconds

void add_party(const RemoteLock& lock, std::string_view role, const RemoteLock::Party& party,
               Answer& answer) {
  answer.add_row({to_string(lock.key), std::string(role), std::string(to_string(party.mode)),
                  party.id.value, short_type(party.type), in_words(party.age)});
}

Answer list_locks(Shell& shell, const Call& call) {
  const auto locks = shell.ask<RemoteLocks>(
      [&](LocksDone done) { return shell.executor().locks(std::move(done)); },
      call.timeout(Shell::kCallTime));
  if (!locks.ok()) return locks.status();
  const bool waited_for = call.flag("WAITED_FOR");
  Answer answer;
  answer.columns = {"LOCK", "ROLE", "MODE", "ID", "TYPE", "FOR"};
  for (const RemoteLock& lock : locks->locks) {
    if (waited_for && lock.waiters.empty()) continue;
    for (const RemoteLock::Party& party : lock.holders) add_party(lock, "holds", party, answer);
    for (const RemoteLock::Party& party : lock.waiters) add_party(lock, "waits", party, answer);
    if (lock.limit) {
      answer.note(fmt::format("at most {} at once may hold {}", *lock.limit, to_string(lock.key)));
    }
  }
  answer.note(counted(locks->locks.size(), "lock") +
              "; FOR begins anew when another master takes over");
  if (locks->left_out > 0) {
    answer.note(fmt::format("{} more did not fit into the answer", locks->left_out));
  }
  return answer;
}

// What is known of a live procedure; nullopt: it is not live.
Result<std::optional<ProcedureInfo>> look_at(Shell& shell, ProcedureId id, Duration timeout) {
  Result<ProcedurePage> page = shell.ask<ProcedurePage>(
      [&](PageDone done) { return shell.executor().list({.root = id}, {}, 1, std::move(done)); },
      timeout);
  if (!page.ok()) return page.status();
  if (page->procedures.empty()) return std::optional<ProcedureInfo>();
  return std::optional(std::move(page->procedures.front()));
}

Answer given_up(const Call& call, const Accepted& lock, const Status& why) {
  Answer answer;
  answer.outcome = Outcome::kRunning;
  answer.status = Status(why.code(), fmt::format("procedure {} waits for the lock; explain {} says "
                                                 "why, and abort {} gives it up",
                                                 lock.id.value, lock.id.value, lock.id.value));
  answer.nonce = lock.nonce;
  answer.procedure = lock.id;
  answer.again = call.resume(lock.nonce, std::nullopt);
  return answer;
}

// The procedure waits until it has the lock. While it lives, wait() tells nothing but its end, so
// its state is looked at again and again.
Answer wait_until_held(Shell& shell, const Call& call, const Accepted& lock) {
  ProcedureProgress progress(shell, lock.id);
  const SteadyTime end = later(shell.now(), call.timeout(Shell::kProcedureTime));
  while (true) {
    const Result<Result<ProcedureResult>> ended = shell.wait_for<Result<ProcedureResult>>(
        [&](ResultCallback done) {
          return shell.executor().wait(lock.id, std::chrono::milliseconds(100), std::move(done));
        },
        Shell::kCallTime, [&] { progress.look(); });
    if (ended.ok() && ended->ok()) {
      Answer answer((*ended)->status.ok() ? Status(StatusCode::kFailedPrecondition,
                                                   "the lock ended: " + (*ended)->result)
                                          : (*ended)->status);
      answer.procedure = lock.id;
      return answer;
    }
    if (!ended.ok()) return given_up(call, lock, ended.status());
    const Duration left = std::max(end - shell.now(), Duration::zero());
    const auto info = look_at(shell, lock.id, std::min(Shell::kCallTime, left));
    if (info.ok() && *info && (*info)->step_name == "HELD") break;
    // Every other failure may pass while there is time.
    if (info.status().code() == StatusCode::kAborted) return given_up(call, lock, info.status());
    if (shell.now() >= end) {
      return given_up(call, lock, Status(StatusCode::kDeadlineExceeded, "no lock in time"));
    }
    progress.look();
  }
  Answer answer =
      said(fmt::format("procedure {0} holds the lock; unlock {0} gives it back", lock.id.value));
  answer.nonce = lock.nonce;
  answer.procedure = lock.id;
  return answer;
}

Answer lock_with(Shell& shell, const Call& call, LockOrder order) {
  order.mode = call.flag("SHARED") ? LockMode::kShared : LockMode::kExclusive;
  order.description = call.option_text("WHY", "locked by a person at the shell");
  const std::uint64_t lease = std::min<std::uint64_t>(
      call.option_number("LEASE", kLeaseUsual),
      std::chrono::duration_cast<std::chrono::seconds>(LockProcedure::kLeaseMax).count() + 1);
  order.lease = std::chrono::seconds(lease);
  const Accepted accepted =
      submit_procedure(shell, call, submission_of(LockProcedure(std::move(order))));
  if (!accepted.id) return accepted.answer;
  return wait_until_held(shell, call, accepted);
}

Answer lock_table(Shell& shell, const Call& call) {
  const TableName table = parse_table_name(call.text(0));
  return lock_with(shell, call, {.name_space = table.name_space, .table = table.table});
}

Answer lock_namespace(Shell& shell, const Call& call) {
  return lock_with(shell, call, {.name_space = call.text(0)});
}

// A second signal of the kind changes nothing more. So what is lost is sent again, each time as a
// signal of its own: a nonce would bind it to one run of the master.
Answer send(Shell& shell, const Call& call, std::string_view signal, std::string_view done_word) {
  const ProcedureId id = call.procedure(0);
  return ask_until_known(
      shell, call,
      [&](Duration left, RemoteOutcomeDone done) {
        shell.executor().signal(id, std::string(signal), {}, {.timeout = left}, std::move(done));
        return CallTicket();
      },
      fmt::format("procedure {} {}", id.value, done_word));
}

// An unlock that came before, perhaps a copy of this one, may have ended the procedure.
Answer unlock(Shell& shell, const Call& call) {
  const ProcedureId id = call.procedure(0);
  Answer answer = send(shell, call, LockProcedure::kUnlockSignal, "is told to give its lock back");
  if (answer.ok()) return follow(shell, call, id);
  const auto ended = end_of(shell, id, answer.status);
  if (!ended || !ended->status.ok() || ended->result != LockProcedure::kUnlocked) return answer;
  answer = said(fmt::format("procedure {} was unlocked already", id.value));
  answer.procedure = id;
  return answer;
}

Answer renew_lock(Shell& shell, const Call& call) {
  return send(shell, call, LockProcedure::kHeartbeatSignal, "begins its lease anew");
}

}  // namespace

void add_lock_commands(std::vector<Command>& table) {
  const OptionSpec shared{"SHARED", Shape::kFlag, "others may share it"};
  const OptionSpec lease{"LEASE", Shape::kNumber,
                         "after how many seconds it is given back if nobody renews it; 300 unless "
                         "said"};
  const OptionSpec why{"WHY", Shape::kText, "why, for others to read"};
  table.push_back(
      {.name = "list_locks",
       .group = "locks",
       .summary = "Lists every lock with its holders, and all who wait for it in order.",
       .example = "list_locks",
       .options = {{"WAITED_FOR", Shape::kFlag, "only those that somebody waits for"}},
       .run = list_locks});
  table.push_back({.name = "lock_table",
                   .group = "locks",
                   .summary = "Locks a table until unlock, or until its lease is over.",
                   .example = "lock_table 't', WHY => 'backup', LEASE => 600",
                   .arguments = {{"table", Takes::kTable}},
                   .options = {shared, lease, why},
                   .effect = Effect::kProcedure,
                   .waits_for_end = false,
                   .run = lock_table});
  table.push_back({.name = "lock_namespace",
                   .group = "locks",
                   .summary = "Locks a namespace, with all its tables.",
                   .example = "lock_namespace 'shop'",
                   .arguments = {{"namespace", Takes::kNamespace}},
                   .options = {lease, why},
                   .effect = Effect::kProcedure,
                   .waits_for_end = false,
                   .run = lock_namespace});
  table.push_back({.name = "unlock",
                   .group = "locks",
                   .summary = "Gives back the lock that a procedure holds for a person.",
                   .example = "unlock 12",
                   .arguments = {{"id", Takes::kProcedure}},
                   .effect = Effect::kTwice,
                   .run = unlock});
  table.push_back({.name = "renew_lock",
                   .group = "locks",
                   .summary = "Begins the lease of a lock anew.",
                   .example = "renew_lock 12",
                   .arguments = {{"id", Takes::kProcedure}},
                   .effect = Effect::kTwice,
                   .run = renew_lock});
}

}  // namespace pv2::shell
