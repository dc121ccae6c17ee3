// SPDX-License-Identifier: Apache-2.0
//
// All that is known of one procedure: as of its last record while it lives, and its result
// afterwards, for as long as the master keeps it.

#include <fmt/format.h>
#include <pv2/engine/procedure_info.h>

#include <chrono>

#include "commands/call.h"
#include "commands/procedure_run.h"
#include "commands/subjects.h"
#include "output/duration.h"

namespace pv2::shell {

namespace {

std::string_view outcome_in_words(pv2::Outcome::Kind kind) {
  using Kind = pv2::Outcome::Kind;
  switch (kind) {
    case Kind::kNext:
      return "done";
    case Kind::kAgain:
      return "runs once more";
    case Kind::kDone:
      return "done, and so is the procedure";
    case Kind::kWait:
      return "waits";
    case Kind::kRetry:
      return "failed for now";
    case Kind::kFail:
      return "failed for good";
    case Kind::kUndone:
      return "undone";
    case Kind::kRetriedNow:
      return "an operator had it tried again";
    case Kind::kSkipped:
      return "an operator skipped it";
    case Kind::kSentBack:
      return "an operator sent the procedure back";
    case Kind::kBypassed:
      return "an operator ended the procedure";
  }
  return "unknown";
}

// Time for a round trip, for a procedure that has ended.
constexpr Duration kRoundTrip = std::chrono::seconds(2);

void add_fact(Answer& answer, std::string what, Field value) {
  answer.add_row({std::move(what), std::move(value)});
}

// Only what there is something to say of.
void add_text(Answer& answer, std::string what, const std::string& text) {
  if (!text.empty()) add_fact(answer, std::move(what), text);
}

void add_status(Answer& answer, std::string what, const Status& status) {
  if (!status.ok()) add_fact(answer, std::move(what), status.to_string());
}

std::string locks_in_words(const LockSet& locks) {
  std::string text;
  for (const LockRequest& request : locks.requests()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", to_string(request.mode),
                        to_string(request.key));
  }
  return text;
}

void add_live(Answer& answer, const ProcedureInfo& info, WallTime now) {
  add_fact(answer, "type", info.type);
  add_fact(answer, "state",
           std::string(info.quarantined ? "QUARANTINED"
                       : info.parked    ? "PARKED"
                                        : to_string(info.state)));
  add_fact(answer, "step", (info.undo ? "undo of " : "") + info.step_name);
  add_fact(answer, "attempt", std::uint64_t{info.attempt});
  if (info.parent) add_fact(answer, "parent", info.parent.value);
  if (info.root != info.id) add_fact(answer, "root", info.root.value);
  add_text(answer, "owner", info.owner);
  add_text(answer, "progress", info.progress);
  add_text(answer, info.holds_locks ? "holds" : "wants", locks_in_words(info.locks));
  add_status(answer, "error", info.error);
  add_status(answer, "error of the undo", info.undo_error);
  add_text(answer, "fields", info.fields);
  add_status(answer, "fields", info.fields_error);
  add_fact(answer, "submitted", in_words(now - info.submitted) + " ago");
  add_fact(answer, "last record", in_words(now - info.updated) + " ago");
}

void add_ended(Answer& answer, const ProcedureResult& result, WallTime now) {
  add_fact(answer, "state", std::string(to_string(result.state)));
  add_status(answer, "why", result.status);
  add_text(answer, "result", result.result);
  if (result.bypassed) add_fact(answer, "bypassed", true);
  add_fact(answer, "took", in_words(result.finished - result.submitted));
  add_fact(answer, "ended", in_words(now - result.finished) + " ago");
}

void add_history(Answer& answer, const std::vector<HistoryEntry>& history, WallTime now) {
  for (const HistoryEntry& entry : history) {
    const bool has_locks = entry.is_of_locks() && entry.outcome == pv2::Outcome::Kind::kUndone;
    const std::string what =
        entry.is_of_locks() ? "its locks, to undo what it has spawned"
                            : fmt::format("{}step {}, attempt {}", entry.undo ? "undo of " : "",
                                          entry.step, entry.attempt);
    add_fact(
        answer, "history",
        fmt::format("{}: {}, {} ago", what, has_locks ? "taken" : outcome_in_words(entry.outcome),
                    in_words(now - entry.at)));
  }
}

// The listing begins with the first live procedure from this number on.
Result<std::optional<ProcedureInfo>> find_live(Shell& shell, const Call& call, ProcedureId id) {
  Result<ProcedurePage> page = shell.ask<ProcedurePage>(
      [&](PageDone done) {
        return shell.executor().list({.with_fields = true}, {id.value - 1}, 1, std::move(done));
      },
      call.timeout(Shell::kCallTime));
  if (!page.ok()) return page.status();
  if (page->procedures.empty() || page->procedures.front().id != id) {
    return std::optional<ProcedureInfo>();
  }
  return std::optional(std::move(page->procedures.front()));
}

Answer procedure(Shell& shell, const Call& call) {
  const ProcedureId id = call.procedure(0);
  const auto live = find_live(shell, call, id);
  if (!live.ok()) return live.status();
  Answer answer;
  answer.columns = {"WHAT", "VALUE"};
  answer.procedure = id;
  if (*live) {
    add_live(answer, **live, shell.wall_now());
  } else {
    const auto result = shell.ask<ProcedureResult>([&](ResultCallback done) {
      return shell.executor().wait(id, kRoundTrip, std::move(done));
    });
    if (!result.ok()) return result.status();
    add_ended(answer, *result, shell.wall_now());
  }
  const auto history = shell.ask<std::vector<HistoryEntry>>(
      [&](HistoryDone done) { return shell.executor().history(id, std::move(done)); },
      call.timeout(Shell::kCallTime));
  if (history.ok()) add_history(answer, *history, shell.wall_now());
  return answer;
}

}  // namespace

void add_procedure_detail_commands(std::vector<Command>& table) {
  table.push_back({.name = "procedure",
                   .group = "procedures",
                   .summary = "Says all that is known of one procedure, with its last steps.",
                   .example = "procedure 12",
                   .arguments = {{"id", Takes::kProcedure}},
                   .run = procedure});
}

}  // namespace pv2::shell
