// SPDX-License-Identifier: Apache-2.0
//
// An order is first checked by itself, then planned and committed in one section. All answers are
// given outside the state mutex.

#include "orders/repairs.h"

#include <new>
#include <utility>

#include "core/effects.h"
#include "core/publisher.h"
#include "core/state_lock.h"
#include "model/names.h"
#include "orders/audit_trail.h"
#include "orders/bypass.h"
#include "orders/messages.h"
#include "orders/repair_plan.h"
#include "orders/repair_preview.h"
#include "orders/repair_record.h"
#include "pv2/engine/limits.h"
#include "submission/ended_procedure.h"
#include "submission/results.h"

namespace pv2 {
namespace {

// Why an order is invalid whatever its target is; or OK.
Status check_order(RepairVerb verb, const RepairNote& note) {
  const auto invalid = [](std::string why) {
    return Status(StatusCode::kInvalidArgument, std::move(why));
  };
  const std::string_view name = to_string(verb);
  if (name == "?") {
    return invalid(fmt::format("there is no order number {}", static_cast<int>(verb)));
  }
  if (note.who.empty() || note.why.empty()) {
    return invalid(
        fmt::format("{} needs RepairNote::{}: who gives an order, and why, is kept with it", name,
                    note.who.empty() ? "who" : "why"));
  }
  if (note.next_step != 0 && verb != RepairVerb::kSkipStep) {
    return invalid(fmt::format("{} with RepairNote::next_step {}, which only skip_step takes", name,
                               note.next_step));
  }
  return Status();
}

AuditEntry entry_for(ProcedureId id, RepairVerb verb, RepairNote note, const Nonce& nonce = {}) {
  AuditEntry entry;
  entry.verb = verb;
  entry.procedure = id;
  entry.named = id;
  entry.next_step = note.next_step;
  entry.nonce = nonce;
  entry.who = std::move(note.who);
  entry.why = std::move(note.why);
  if (entry.who.size() > limits::kWhoBytes) entry.who.resize(limits::kWhoBytes);
  if (entry.why.size() > limits::kWhyBytes) entry.why.resize(limits::kWhyBytes);
  return entry;
}

OrderContent content_of(const AuditEntry& entry) {
  return {.procedure = entry.named, .verb = entry.verb, .next_step = entry.next_step};
}

// Why an order under `nonce` is invalid whatever else it is; or OK.
Status check_nonce(const EngineCore& core, const Nonce& nonce) {
  if (!nonce) {
    return Status(StatusCode::kInvalidArgument,
                  "the nonce of an order has a value that is not 0; order() takes none");
  }
  if (core.keeps_records) return Status();
  return Status(StatusCode::kFailedPrecondition,
                "the store keeps no records, so nothing would tell a copy of an order that it was "
                "carried out before; order() takes no nonce");
}

// What an order with a nonce is told if its tree is forgotten; any other answer is passed on.
Status explained(const Status& answer) {
  if (answer.code() != StatusCode::kExpired) return answer;
  return answer.with_context("nothing tells any more whether it was carried out before");
}

// What an order with a nonce is told when there was no memory to carry it out.
Status no_memory(const AuditEntry& entry) {
  return Status(StatusCode::kUnknownOutcome,
                fmt::format("there was no memory for {}; give it again under the same nonce",
                            name_of(content_of(entry))));
}

// These orders change members before they have a record, and must not stop half way: without memory
// the process ends.
void end_or_skip_undo(EngineCore& core, const Order& order, AuditEntry entry, Reply<Status> reply,
                      Effects& effects) noexcept PV2_REQUIRES(core.state_mutex) {
  order.kind == Order::Kind::kBypass
      ? bypass(core, order, std::move(entry), std::move(reply), effects)
      : commit_order(core, order, std::move(entry), std::move(reply), effects);
}

void commit_or_wait(EngineCore& core, const Order& order, AuditEntry entry, Reply<Status> reply,
                    Effects& effects) PV2_REQUIRES(core.state_mutex) {
  const bool changes_members =
      order.kind == Order::Kind::kBypass || order.kind == Order::Kind::kSkipUndo;
  changes_members ? end_or_skip_undo(core, order, std::move(entry), std::move(reply), effects)
                  : commit_order(core, order, std::move(entry), std::move(reply), effects);
}

}  // namespace

std::string_view to_string(RepairVerb verb) noexcept {
  switch (verb) {
    case RepairVerb::kRetryNow:
      return "retry_now";
    case RepairVerb::kSkipStep:
      return "skip_step";
    case RepairVerb::kFailAndRollBack:
      return "fail_and_roll_back";
    case RepairVerb::kBypass:
      return "bypass";
  }
  return "?";
}

void Repairs::repair(ProcedureId id, RepairVerb verb, RepairNote note, Reply<Status> reply) {
  Status invalid = check_order(verb, note);
  if (invalid.ok()) {
    return core_.loading.when_over(
        std::move(reply), [this, entry = entry_for(id, verb, std::move(note))](
                              Reply<Status> later) { carry_out(entry, std::move(later)); });
  }
  Effects effects;
  effects.reply(std::move(reply), std::move(invalid));
  publisher_.perform(effects);
}

void Repairs::carry_out(const AuditEntry& entry, Reply<Status> reply) {
  const ProcedureId id = entry.named;
  Effects effects;
  Status refusal;
  ProcedureId root_to_abort;
  bool live = true;
  {
    StateLock lock(core_);
    Execution* const target = core_.find(id);
    live = target != nullptr;
    refusal = core_.unavailable();
    if (refusal.ok() && live) refusal = why_set_aside(core_, id);
    if (refusal.ok() && live) {
      const auto order = plan_order(core_, *target, entry.verb, entry.next_step);
      refusal = order.status();
      if (order.ok() && order->kind == Order::Kind::kAbortRoot) {
        root_to_abort = order->head->id;
      } else if (order.ok()) {
        commit_or_wait(core_, *order, entry, std::exchange(reply, {}), effects);
      }
    }
  }
  if (root_to_abort) {  // a message carries the abort out: it waits for no running step
    return messages_.abort(root_to_abort, {.reason = entry.why, .who = entry.who}, std::move(reply),
                           &entry);
  }
  if (!refusal.ok() || !live) {
    effects.reply(std::move(reply), refusal.ok() ? results_.why_not_live(id) : refusal);
  }
  publisher_.perform(effects);
}

OrderTicket Repairs::repair_once(const Nonce& nonce, ProcedureId id, RepairVerb verb,
                                 RepairNote note, Reply<Result<Ordered>> reply) {
  Status refusal = check_order(verb, note);
  if (refusal.ok()) refusal = check_nonce(core_, nonce);
  const AuditEntry entry = entry_for(id, verb, std::move(note), nonce);
  if (refusal.ok()) {
    OrderNonces::Turn turn = nonces_.enter(nonce, content_of(entry), reply);
    if (turn.is_first) begin_once(turn.ticket, entry);
    // A copy is answered with the one that is on its way.
    if (turn.refusal.ok()) return turn.ticket;
    refusal = std::move(turn.refusal);
  }
  core_.loading.when_over(std::move(reply), [this, entry, refusal = std::move(refusal)](
                                                Reply<Result<Ordered>> later) mutable {
    refuse_once(entry, std::move(refusal), std::move(later));
  });
  return {};
}

// It has the turn. A copy may wait by now, so that there is no memory is an answer, too.
void Repairs::begin_once(const OrderTicket& turn, const AuditEntry& entry) {
  try {
    core_.loading.when_over(Reply<Status>(), [this, turn, entry](const Reply<Status>&) {
      carry_out_once(turn, entry);
    });
  } catch (const std::bad_alloc&) {
    end_without_memory(turn, entry);
  }
}

// NOLINTNEXTLINE(bugprone-exception-escape): as the header says
void Repairs::end_without_memory(const OrderTicket& turn, const AuditEntry& entry) noexcept {
  answer_all(turn, no_memory(entry));
}

void Repairs::refuse_once(const AuditEntry& entry, Status refusal, Reply<Result<Ordered>> reply) {
  // The order on its way may be the one that reuses the nonce, and will be refused.
  const bool is_other = refusal.code() == StatusCode::kKeyReused;
  const Result<bool> done = is_other ? was_carried_out(entry) : false;
  // Perhaps this order was carried out, and its caller must not hear that it never will be.
  if (!done.ok()) refusal = explained(done.status());
  Effects effects;
  if (done.ok() && *done) {
    effects.reply(std::move(reply), Ordered{.replayed = true});
  } else {
    effects.reply(std::move(reply), std::move(refusal));
  }
  publisher_.perform(effects);
}

void Repairs::carry_out_once(const OrderTicket& turn, const AuditEntry& entry) {
  try {
    const Result<bool> done = was_carried_out(entry);
    if (!done.ok()) return answer_all(turn, explained(done.status()));
    if (*done) return answer_all(turn, Ordered{.replayed = true});
    carry_out(entry, {.tell =
                          [this, turn](const Status& answer) {
                            if (answer.ok()) return answer_all(turn, Ordered());
                            answer_all(turn, explained(answer));
                          },
                      .on = ReplyOn::kHere});
  } catch (const std::bad_alloc&) {
    end_without_memory(turn, entry);
  }
}

// Whether an earlier copy of the order was carried out; kKeyReused: another order was.
Result<bool> Repairs::was_carried_out(const AuditEntry& entry) {
  {
    StateLock lock(core_);
    if (Status stopped = core_.unavailable(); !stopped.ok()) return stopped;
  }
  const auto earlier = find_order(core_, entry.named, entry.nonce);
  if (!earlier.ok()) return earlier.status();
  if (!*earlier) return false;
  Status other = why_not_the_same(entry.nonce, content_of(**earlier), content_of(entry));
  if (!other.ok()) return other;
  return true;
}

void Repairs::answer_all(const OrderTicket& turn, const Result<Ordered>& answer) {
  Effects effects;
  Result<Ordered> own = answer;
  for (OrderNonces::Waiter& each : nonces_.leave(turn)) {
    effects.reply(std::move(each.reply), own);
    if (own.ok()) own->replayed = true;  // for every copy but the first
  }
  publisher_.perform(effects);
}

Result<std::vector<std::string>> Repairs::preview(ProcedureId id, RepairVerb verb) {
  if (Status invalid = check_order(verb, {.who = "preview", .why = "asked"}); !invalid.ok()) {
    return invalid;
  }
  auto lines = preview_order(core_, id, verb);
  return lines ? *std::move(lines) : results_.why_not_live(id);
}

Result<std::vector<AuditEntry>> Repairs::audit(ProcedureId id) {
  auto trail = read_audit(core_, id);
  if (!trail.ok()) return trail.status();
  if (!trail->entries.empty() || trail->live) return std::move(trail->entries);
  const Status gone = results_.why_not_live(id);
  if (gone.code() == StatusCode::kFailedPrecondition) return std::move(trail->entries);
  return gone.with_context("the audit of " + name_of(id) +
                           " (of a child, ask for that of its root)");
}

}  // namespace pv2
