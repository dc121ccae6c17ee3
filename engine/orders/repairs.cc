// SPDX-License-Identifier: Apache-2.0
//
// An order is first checked by itself, then planned and committed in one section. All answers are
// given outside the state mutex.

#include "orders/repairs.h"

#include <utility>

#include "core/effects.h"
#include "core/publisher.h"
#include "core/state_lock.h"
#include "model/names.h"
#include "orders/bypass.h"
#include "orders/messages.h"
#include "orders/repair_plan.h"
#include "orders/repair_preview.h"
#include "orders/repair_record.h"
#include "pv2/engine/limits.h"
#include "records/audit_row.h"
#include "records/inbox_codec.h"
#include "records/row_keys.h"
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

AuditEntry entry_for(ProcedureId id, RepairVerb verb, RepairNote note) {
  AuditEntry entry;
  entry.verb = verb;
  entry.procedure = id;
  entry.who = std::move(note.who);
  entry.why = std::move(note.why);
  if (entry.who.size() > limits::kWhoBytes) entry.who.resize(limits::kWhoBytes);
  if (entry.why.size() > limits::kWhyBytes) entry.why.resize(limits::kWhyBytes);
  return entry;
}

void carry_out(EngineCore& core, const Order& order, AuditEntry entry, Reply<Status> reply,
               Effects& effects) PV2_REQUIRES(core.state_mutex) {
  order.kind == Order::Kind::kBypass
      ? bypass(core, order, std::move(entry), std::move(reply), effects)
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
  Effects effects;
  if (Status invalid = check_order(verb, note); !invalid.ok()) {
    effects.reply(std::move(reply), std::move(invalid));
    return publisher_.perform(effects);
  }
  const std::uint32_t next_step = note.next_step;
  const AuditEntry entry = entry_for(id, verb, std::move(note));
  Status refusal;
  ProcedureId root_to_abort;
  bool live = true;
  {
    StateLock lock(core_);
    Execution* const target = core_.find(id);
    live = target != nullptr;
    refusal = core_.unavailable();
    if (refusal.ok() && live) {
      const auto order = plan_order(core_, *target, verb, next_step);
      refusal = order.status();
      if (order.ok() && order->kind == Order::Kind::kAbortRoot) {
        root_to_abort = order->head->id;
      } else if (order.ok()) {
        carry_out(core_, *order, entry, std::exchange(reply, {}), effects);
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

Result<std::vector<std::string>> Repairs::preview(ProcedureId id, RepairVerb verb) {
  if (Status invalid = check_order(verb, {.who = "preview", .why = "asked"}); !invalid.ok()) {
    return invalid;
  }
  auto lines = preview_order(core_, id, verb);
  return lines ? *std::move(lines) : results_.why_not_live(id);
}

Result<std::vector<AuditEntry>> Repairs::audit(ProcedureId id) {
  ProcedureId root = id;
  bool live = false;
  {
    StateLock lock(core_);
    const Execution* const found = core_.find(id);
    live = found != nullptr;
    if (live) root = found->root->id;
  }
  std::vector<AuditEntry> entries;
  const auto read = [&] {
    return core_.store.scan(Space::kProcedure, procedure_key(root, RowKind::kAudit),
                            [&](const StoredRow& row) {
                              auto audit = decode_audit(row.value);
                              if (!audit.ok()) return audit.status();
                              if (audit->root && root == id) root = audit->root;
                              entries.push_back(std::move(audit->entry));
                              return Status();
                            });
  };
  Status scanned = read();
  if (scanned.ok() && !live && root != id) {  // a child of a tree that has ended
    entries.clear();
    scanned = read();
  }
  const std::string what = "the audit of " + name_of(id);
  if (!scanned.ok()) return scanned.with_context(what);
  if (!entries.empty() || live) return entries;
  const Status gone = results_.why_not_live(id);
  if (gone.code() == StatusCode::kFailedPrecondition) return entries;  // nothing was ordered
  return gone.with_context(what + " (of a child, ask for that of its root)");
}

}  // namespace pv2
