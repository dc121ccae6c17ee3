// SPDX-License-Identifier: Apache-2.0
//
// Commands that look at procedures, wait for them, and end them.

#include <fmt/format.h>
#include <pv2/engine/explanation.h>

#include <map>
#include <set>

#include "commands/call.h"
#include "commands/procedure_progress.h"
#include "commands/procedure_run.h"
#include "commands/subjects.h"
#include "output/duration.h"
#include "session/shell.h"

namespace pv2::shell {

namespace {

using Shape = OptionSpec::Shape;

constexpr std::uint64_t kProceduresUsual = 100;
constexpr std::uint64_t kPage = 500;

std::optional<ProcedureState> parse_state(const std::string& text) {
  for (int number = 1; number <= 7; ++number) {
    const auto state = static_cast<ProcedureState>(number);
    if (to_string(state) == text) return state;
  }
  return std::nullopt;
}

/// All pages, up to a limit.
Result<std::vector<ProcedureInfo>> read_procedures(Shell& shell, const Call& call,
                                                   const ListFilter& filter, std::uint64_t limit) {
  std::vector<ProcedureInfo> found;
  ProcedureId after;
  while (found.size() < limit) {
    const std::uint64_t wanted = std::min<std::uint64_t>(limit - found.size(), kPage);
    Result<ProcedurePage> page = shell.ask<ProcedurePage>(
        [&](PageDone done) {
          return shell.executor().list(filter, after, wanted, std::move(done));
        },
        call.timeout(Shell::kCallTime));
    if (!page.ok()) return page.status();
    std::move(page->procedures.begin(), page->procedures.end(), std::back_inserter(found));
    if (!page->next) break;
    after = page->next;
  }
  return found;
}

std::string state_in_words(const ProcedureInfo& info) {
  if (info.quarantined) return "QUARANTINED";
  if (info.parked) return "PARKED";
  return std::string(to_string(info.state));
}

// What is wrong comes first; what it waits for is known by explain.
std::string progress_in_words(const ProcedureInfo& info) {
  if (!info.error.ok()) return info.error.to_string();
  if (!info.undo_error.ok()) return info.undo_error.to_string();
  return info.progress;
}

/// Adds a procedure and its children, each below its parent.
class Tree {
 public:
  Tree(const std::vector<ProcedureInfo>& procedures, WallTime now) : now_(now) {
    for (const ProcedureInfo& info : procedures) ids_.insert(info.id);
    for (const ProcedureInfo& info : procedures) {
      // A child whose parent is not in the list stands on its own.
      children_[ids_.contains(info.parent) ? info.parent : ProcedureId{}].push_back(&info);
    }
  }

  void add_to(Answer& answer, ProcedureId parent = {}, unsigned depth = 0) const {
    const auto found = children_.find(parent);
    if (found == children_.end()) return;
    for (const ProcedureInfo* info : found->second) {
      answer.add_row(
          {info->id.value, short_type(info->type), state_in_words(*info),
           (info->undo ? "undo of " : "") + info->step_name, std::uint64_t{info->attempt},
           progress_in_words(*info), info->parent ? Field(info->parent.value) : Field(),
           in_words(now_ - info->submitted)},
          2 * depth);
      add_to(answer, info->id, depth + 1);
    }
  }

 private:
  const WallTime now_;
  std::set<ProcedureId> ids_;
  std::map<ProcedureId, std::vector<const ProcedureInfo*>> children_;
};

Answer list_procedures(Shell& shell, const Call& call) {
  ListFilter filter{.with_fields = true};
  if (!call.flag("ALL")) filter.is_root = true;
  if (call.has_option("TYPE")) {
    const std::string type = call.option_text("TYPE");
    filter.type = type.find('.') == std::string::npos ? "cluster." + type : type;
    filter.is_root.reset();
  }
  if (call.has_option("STATE")) {
    filter.state = parse_state(call.option_text("STATE"));
    filter.is_root.reset();
  }
  if (call.has_option("ROOT")) {
    filter.root = {call.option_number("ROOT", 0)};
    filter.is_root.reset();
  }
  if (call.flag("PARKED")) filter.parked = true;
  const std::uint64_t limit = call.option_number("LIMIT", kProceduresUsual);
  const auto procedures = read_procedures(shell, call, filter, limit);
  if (!procedures.ok()) return procedures.status();
  Answer answer;
  answer.columns = {"ID", "TYPE", "STATE", "STEP", "ATTEMPT", "PROGRESS", "PARENT", "AGE"};
  Tree(*procedures, shell.wall_now()).add_to(answer);
  answer.note(counted(procedures->size(), "procedure") +
              (procedures->size() == limit ? "; LIMIT => n shows more" : ""));
  return answer;
}

Answer explain(Shell& shell, const Call& call) {
  const Result<Explanation> explanation = shell.ask<Explanation>(
      [&](ExplanationDone done) {
        return shell.executor().explain(call.procedure(0), std::move(done));
      },
      call.timeout(Shell::kCallTime));
  if (!explanation.ok()) return explanation.status();
  Answer answer;
  answer.columns = {"ID", "TYPE", "STATE", "STEP", "REASON"};
  for (const Explanation::Procedure& procedure : explanation->procedures) {
    for (const WaitReason& reason : procedure.reasons) {
      answer.add_row({procedure.id.value, short_type(procedure.type),
                      std::string(to_string(procedure.state)),
                      (procedure.undo ? "undo of " : "") + procedure.step_name, to_string(reason)});
    }
  }
  std::string causes;
  for (const ProcedureId id : explanation->root_causes) {
    causes += fmt::format("{}{}", causes.empty() ? "" : ", ", id.value);
  }
  if (!causes.empty()) answer.note("look first at: " + causes);
  for (const auto& cycle : explanation->cycles) {
    std::string members;
    for (const ProcedureId id : cycle) members += fmt::format("{} -> ", id.value);
    answer.note(fmt::format("they wait for each other: {}{}", members, cycle.front().value));
  }
  if (explanation->left_out > 0) {
    answer.note(fmt::format("{} more that others wait for are not shown", explanation->left_out));
  }
  return answer;
}

Answer wait(Shell& shell, const Call& call) { return follow(shell, call, call.procedure(0)); }

// A procedure is aborted once, however often asked. Its result says that it was, when it has ended.
Answer abort(Shell& shell, const Call& call) {
  const ProcedureId id = call.procedure(0);
  Answer answer = ask_until_known(
      shell, call,
      [&](Duration /*left*/, RemoteOutcomeDone done) {  // the ticket ends it
        return shell.executor().abort(id, call.option_text("REASON", "asked by the shell"),
                                      "pv2-shell", std::move(done));
      },
      fmt::format("procedure {} is being undone", id.value));
  if (answer.ok()) return answer;
  const auto ended = end_of(shell, id, answer.status);
  if (!ended || ended->status.code() != StatusCode::kAborted) return answer;
  answer =
      said(fmt::format("procedure {} was aborted already: {}", id.value, ended->status.message()));
  answer.procedure = id;
  return answer;
}

}  // namespace

void add_procedure_commands(std::vector<Command>& table) {
  const Argument pid{"id", Takes::kProcedure};
  table.push_back(
      {.name = "list_procedures",
       .group = "procedures",
       .summary = "Lists the procedures that have not ended; with ALL, their children below them.",
       .example = "list_procedures ALL, STATE => 'RUNNABLE', LIMIT => 20",
       .options = {{"ALL", Shape::kFlag, "children too, each below its parent"},
                   {"TYPE", Shape::kText, "such as 'CreateTable'"},
                   {"STATE",
                    Shape::kText,
                    "its state",
                    {"RUNNABLE", "WAITING", "WAITING_TIMEOUT", "FAILED", "SUCCESS", "ROLLEDBACK",
                     "INITIALIZING"}},
                   {"ROOT", Shape::kNumber, "this procedure and all below it"},
                   {"PARKED", Shape::kFlag, "only those that wait for an operator"},
                   {"LIMIT", Shape::kNumber, "how many at most; 100 unless said"}},
       .run = list_procedures});
  table.push_back({.name = "explain",
                   .group = "procedures",
                   .summary = "Says why a procedure does not go on, down to the root causes.",
                   .example = "explain 12",
                   .arguments = {pid},
                   .run = explain});
  table.push_back({.name = "wait",
                   .group = "procedures",
                   .summary = "Waits until a procedure has ended, and prints its result.",
                   .example = "wait 12",
                   .arguments = {pid},
                   .run = wait});
  table.push_back({.name = "abort",
                   .group = "procedures",
                   .summary = "Has a procedure undone, unless it is past its point of no return.",
                   .example = "abort 12, REASON => 'wrong table'",
                   .arguments = {pid},
                   .options = {{"REASON", Shape::kText, "why; it is kept with the result"}},
                   .effect = Effect::kTwice,
                   .run = abort});
}

}  // namespace pv2::shell
