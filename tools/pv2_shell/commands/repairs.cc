// SPDX-License-Identifier: Apache-2.0
//
// The orders of an operator. Without WHY an order is only previewed: it says what it would do and
// leave inconsistent, and changes nothing. An order has a nonce before it is sent for the first
// time, and its audit entry keeps it: so it is carried out once, however often it is sent. The
// audit says under which nonce.

#include <fmt/format.h>
#include <pv2/engine/repair.h>

#include <cstdlib>

#include "commands/call.h"
#include "commands/procedure_run.h"
#include "commands/subjects.h"
#include "output/duration.h"

namespace pv2::shell {
namespace {

using Shape = OptionSpec::Shape;

std::string who_types() {
  const char* const user = std::getenv("USER");
  return user == nullptr || *user == '\0' ? "pv2-shell" : user;
}

Answer preview(Shell& shell, const Call& call, RepairVerb verb) {
  const auto lines = shell.ask<std::vector<std::string>>(
      [&](PreviewDone done) {
        return shell.executor().preview(call.procedure(0), verb, std::move(done));
      },
      call.timeout(Shell::kCallTime));
  if (!lines.ok()) return lines.status();
  Answer answer;
  answer.columns = {"IT WOULD"};
  for (const std::string& line : *lines) answer.add_row({line});
  answer.note(
      fmt::format("nothing is changed; {}, WHY => '...' carries it out", to_text(call.statement)));
  answer.procedure = call.procedure(0);
  return answer;
}

// Another attempt may tell, unless this one was refused for a reason that stays; then the audit
// does, if there is one.
std::string how_to_ask_again(const Call& call, const Nonce& nonce, const Status& why) {
  switch (why.code()) {
    case StatusCode::kExpired:
    case StatusCode::kNotFound:
      return {};
    case StatusCode::kFailedPrecondition:
    case StatusCode::kInvalidArgument:
      return fmt::format("audit {}", call.procedure(0).value);
    default:
      return call.resume(nonce, std::nullopt);
  }
}

Answer unknown_order(const Call& call, const Nonce& nonce, const Status& why) {
  Answer answer;
  answer.outcome = Outcome::kUnknown;
  answer.status = why;
  answer.again = how_to_ask_again(call, nonce, why);
  return answer;
}

template <RepairVerb kVerb>
Answer order(Shell& shell, const Call& call) {
  if (!call.has_option("WHY")) {
    if (!call.identity.nonce) return preview(shell, call, kVerb);
    return Status(StatusCode::kInvalidArgument,
                  "WHY is missing: without it an order is only previewed, and a preview takes no "
                  "nonce; for example: " +
                      std::string(call.command->example));
  }
  const ProcedureId id = call.procedure(0);
  RepairNote note{.who = call.option_text("WHO", who_types()),
                  .why = call.option_text("WHY"),
                  .next_step = static_cast<std::uint32_t>(call.option_number("NEXT_STEP", 0))};
  const RemoteOrderOptions options{
      .nonce = call.identity.nonce ? call.identity.nonce : shell.next_nonce(),
      .resumed = call.identity.resumed,
      .timeout = call.timeout(Shell::kCallTime)};
  const Result<OrderOutcome> outcome = shell.wait_for<OrderOutcome>(
      [&](OrderOutcomeDone done) {
        return shell.executor().order(id, kVerb, std::move(note), options, std::move(done));
      },
      *options.timeout,
      [&shell] { shell.progress().show("waits for the order to be carried out"); });
  Answer answer;
  if (outcome.ok() && outcome->ok()) {
    answer = said(outcome->replayed ? fmt::format("carried out already, to procedure {}", id.value)
                                    : fmt::format("done to procedure {}", id.value));
  } else if (outcome.ok() && outcome->kind == OrderOutcome::Kind::kFailed) {
    answer = Answer(outcome->status);
  } else {
    answer = unknown_order(call, options.nonce, outcome.ok() ? outcome->status : outcome.status());
  }
  answer.nonce = options.nonce;
  answer.procedure = id;
  return answer;
}

Answer audit(Shell& shell, const Call& call) {
  const AuditRange range{.before = call.option_number("BEFORE", 0),
                         .limit = call.option_number("LIMIT", 0)};
  const auto page = shell.ask<RemoteAudit>(
      [&](AuditDone done) {
        return shell.executor().audit(call.procedure(0), range, std::move(done));
      },
      call.timeout(Shell::kCallTime));
  if (!page.ok()) return page.status();
  Answer answer;
  answer.columns = {"NO", "ORDER", "ID", "STEP", "WHO", "WHY", "AGE", "NONCE"};
  std::uint64_t number = page->earlier;
  for (const AuditEntry& entry : page->entries) {
    answer.add_row({++number, std::string(to_string(entry.verb)), entry.procedure.value,
                    entry.step == 0 ? Field() : Field(std::uint64_t{entry.step}), entry.who,
                    entry.why, in_words(shell.wall_now() - entry.at),
                    entry.nonce ? Field(to_string(entry.nonce)) : Field()});
  }
  answer.note(counted(page->entries.size(), "order"));
  if (page->earlier > 0) {
    answer.note(fmt::format("{} came before; audit {}, BEFORE => {} lists them",
                            counted(page->earlier, "order"), call.procedure(0).value,
                            page->earlier + 1));
  }
  return answer;
}

Command repair(std::string_view name, std::string_view summary, std::string_view example,
               Answer (*run)(Shell&, const Call&)) {
  return {.name = name,
          .group = "repairs",
          .summary = summary,
          .example = example,
          .arguments = {{"id", Takes::kProcedure}},
          .options = {{"WHY", Shape::kText, "why; without it the order is only previewed"},
                      {"WHO", Shape::kText, "who; the user's name unless said"}},
          .effect = Effect::kOrder,
          .run = run};
}

}  // namespace

void add_repair_commands(std::vector<Command>& table) {
  table.push_back(repair("retry", "Tries at once what waits for its time, or what is parked.",
                         "retry 12, WHY => 'disk is back'", order<RepairVerb::kRetryNow>));
  Command skip =
      repair("skip_step", "Counts the step, or undo, at which a procedure is parked as done.",
             "skip_step 12, WHY => 'done by hand'", order<RepairVerb::kSkipStep>);
  skip.options.push_back({.name = "NEXT_STEP",
                          .shape = Shape::kNumber,
                          .help = "the number of the step that follows",
                          .number_max = UINT32_MAX});
  table.push_back(std::move(skip));
  table.push_back(repair("roll_back", "Has a procedure undone, as far as it can be.",
                         "roll_back 12, WHY => 'not wanted'", order<RepairVerb::kFailAndRollBack>));
  table.push_back(repair("bypass",
                         "Ends a procedure that is parked, quarantined or being undone, as it is.",
                         "bypass 12, WHY => 'mended by hand'", order<RepairVerb::kBypass>));
  table.push_back({.name = "audit",
                   .group = "repairs",
                   .summary = "Lists the orders that were carried out on a procedure, the newest "
                              "that fit into an answer.",
                   .example = "audit 12, BEFORE => 400, LIMIT => 20",
                   .arguments = {{"id", Takes::kProcedure}},
                   .options = {{"BEFORE", Shape::kNumber, "only those before the one of this NO"},
                               {"LIMIT", Shape::kNumber, "how many at most, the newest of these"}},
                   .run = audit});
}

}  // namespace pv2::shell
