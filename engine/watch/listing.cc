// SPDX-License-Identifier: Apache-2.0
//
// A page is gathered in pieces. Between two pieces the engine goes on, so a page does not describe
// one moment; but each procedure in it is as one durable record said.

#include "watch/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/state_lock.h"
#include "model/guard.h"
#include "model/names.h"
#include "pv2/engine/procedure_registry.h"
#include "records/row_parts.h"
#include "records/state_codec.h"
#include "submission/stored_result.h"
#include "tree/domains.h"
#include "tree/member_step.h"
#include "watch/parking.h"

namespace pv2 {
namespace {

// Live procedures looked at in one critical section. That takes about 30 us where all ids are live,
// and up to 100 us where one in 64 or fewer are: gaps between ids are not looked at.
constexpr std::size_t kLooksPerPiece = 1024;
// Procedures copied in one critical section: about 50 us.
constexpr std::size_t kCopiesPerPiece = 64;
// Parked members looked at in one critical section, to say why others stand still. Nearly always
// one or two per tree.
constexpr std::size_t kParkedPerPiece = 256;

// A procedure as its last record says, and what is needed to print its fields.
struct Published {
  ProcedureInfo info;
  const ProcedureType* type = nullptr;  // of the registry, which lives as long as the executor
  std::string arguments;
  std::string image;
};

std::vector<HistoryEntry> entries_of(const History& history) {
  std::vector<HistoryEntry> entries;
  entries.reserve(history.size());
  for (std::size_t i = 0; i < history.size(); ++i) entries.push_back(history.at(i));
  return entries;
}

// While it waits for children: how many have ended, in numbers and in words.
void show_join(const Execution& execution, ProcedureInfo& info) {
  const Execution* const youngest = execution.children().last;
  if (execution.record.state != ProcedureState::kWaiting || youngest == nullptr) return;
  // Children of an earlier step may be among the unfinished ones, if a record of a child is lost.
  const Children& children = execution.children();
  info.children_total = children.joined;
  info.children_done = children.joined - std::min(children.joined, children.unfinished);
  const bool has_name = youngest->type != nullptr && !execution.children().joins_mixed_types;
  info.progress = fmt::format("{} of {} {}", info.children_done, info.children_total,
                              has_name ? youngest->type->counted_as : Procedure::kCountedAs);
}

// A procedure that is parked with its tree may have failed itself, or its tree has: then both that
// failure and what the tree waits for are said.
Status error_of(Execution& execution, bool parked, ParkedLooks& parked_looks) {
  const Failure* const failure = execution.record.failure();
  Status own = failure != nullptr ? failure->shown() : Status();
  if (own.ok()) own = execution.domain.rare->cause;
  if (!parked || execution.record.parked) return own;
  const bool is_undone = parked_head(execution).domain.state != DomainState::kParkedBeyond;
  if (!own.ok() && !is_undone) return own;  // it stands still because of this failure
  const Status why = why_parked(execution, parked_looks);
  if (own.ok()) return why;
  return {own.code(), fmt::format("{}; {}", own.message(), why.to_string())};
}

ProcedureInfo info_of(Execution& execution, ParkedLooks& parked_looks) {
  ProcedureInfo info;
  info.id = execution.id;
  const Execution* const parent = execution.parent_execution();
  info.parent = parent != nullptr ? parent->id : ProcedureId();
  info.root = execution.root()->id;
  info.type = execution.name_of_type();
  info.owner = execution.owner();
  info.state = execution.record.state;
  const std::uint32_t undoes = step_to_undo(execution);
  info.undo = undoes != 0;
  info.step = info.undo ? undoes : execution.record.step;
  const StepInfo* const step =
      execution.type != nullptr ? execution.type->find_step(info.step) : nullptr;
  if (step != nullptr) info.step_name = step->name;
  info.attempt = execution.record.attempt;
  info.parked = is_parked(execution) && !execution.is_quarantined();
  info.quarantined = execution.is_quarantined();
  info.holds_locks = execution.record.holds_locks;
  info.locks = execution.locks().to_set();
  info.error = error_of(execution, info.parked, parked_looks);
  if (execution.record.failure() != nullptr) info.undo_error = execution.record.failure()->undo;
  info.submitted = execution.submitted;
  info.updated = execution.record.updated;
  info.history = entries_of(execution.record.history);
  show_join(execution, info);
  return info;
}

Published published(Execution& execution, bool with_fields, ParkedLooks& parked_looks) {
  Published copy;
  copy.info = info_of(execution, parked_looks);
  if (!with_fields) return copy;
  copy.type = execution.type;
  copy.arguments = execution.arguments.view();
  copy.image = execution.record.image.view();
  return copy;
}

// Whether the procedure has a durable record and has not ended with its tree.
bool is_listed(Execution& execution) {
  return execution.record.state != ProcedureState::kInitializing && !execution.leaves();
}

bool matches(Execution& execution, const ListFilter& filter, WallTime now) {
  if (!is_listed(execution)) return false;
  if (filter.state && execution.record.state != *filter.state) return false;
  if (!filter.type.empty() && execution.name_of_type() != filter.type) return false;
  if (!filter.owner.empty() && execution.owner() != filter.owner) return false;
  if (filter.root && execution.root()->id != filter.root) return false;
  if (filter.is_root && execution.is_root() != *filter.is_root) return false;
  if (filter.older_than && now - execution.submitted < *filter.older_than) return false;
  if (filter.quarantined && execution.is_quarantined() != *filter.quarantined) return false;
  if (filter.parked) {
    const bool parked = is_parked(execution) && !execution.is_quarantined();
    if (parked != *filter.parked) return false;
  }
  return !filter.entity || execution.locks().find(*filter.entity);
}

void add_words(std::string& progress, const std::string& more) {
  if (!progress.empty() && !more.empty()) progress += "; ";
  progress += more;
}

// Calls user code, so no lock may be held.
void print_fields_of(Published& copy) {
  if (copy.type == nullptr) {
    copy.info.fields_error =
        Status(StatusCode::kNotSupported,
               "its type '" + copy.info.type + "' is not registered in this program");
    return;
  }
  const ProcedureType& type = *copy.type;
  copy.info.fields_error =
      guarded([&] { return "showing the fields of a " + type.name; },
              [&]() -> Status {
                const auto object = type.create();
                Status read = type.decode(*object, FieldSelection::kArguments, copy.arguments);
                if (read.ok()) read = type.decode(*object, FieldSelection::kState, copy.image);
                if (!read.ok()) return read;
                copy.info.fields = type.print(*object);
                add_words(copy.info.progress, object->progress());
                return read;
              });
}

}  // namespace

ProcedurePage list_procedures(EngineCore& core, const ListFilter& filter, ProcedureId after,
                              std::size_t limit) {
  ProcedurePage page;
  page.next = after;
  if (limit == 0) return page;
  const WallTime now = core.clock.wall_now();
  std::vector<Published> piece;
  do {
    piece.clear();
    {
      StateLock lock(core);
      ParkedLooks parked_looks{kParkedPerPiece};
      const std::size_t room = std::min(kCopiesPerPiece, limit - page.procedures.size());
      after = core.state.live.visit_after(after, kLooksPerPiece, [&](Execution& execution) {
        if (matches(execution, filter, now)) {
          piece.push_back(published(execution, filter.with_fields, parked_looks));
        }
        return piece.size() < room;
      });
    }
    core.waiting_for_state.give_way();
    for (Published& copy : piece) {
      if (filter.with_fields) print_fields_of(copy);
      page.procedures.push_back(std::move(copy.info));
    }
  } while (after && page.procedures.size() < limit);
  page.next = after;
  return page;
}

Result<ProcedureInfo> describe_procedure(EngineCore& core, ProcedureId id) {
  Published copy;
  {
    StateLock lock(core);
    Execution* const execution = core.find(id);
    if (execution == nullptr || !is_listed(*execution)) {
      if (Status status = core.why_not_loaded(); !status.ok()) return status;
      return Status(StatusCode::kNotFound, name_of(id) + " is not live");
    }
    ParkedLooks parked_looks{kParkedPerPiece};
    copy = published(*execution, true, parked_looks);
  }
  print_fields_of(copy);
  return std::move(copy.info);
}

Result<std::vector<HistoryEntry>> history_of(EngineCore& core, ProcedureId id) {
  {
    StateLock lock(core);
    if (const Execution* const execution = core.find(id); execution != nullptr) {
      return entries_of(execution->record.history);
    }
    if (!core.state.ids.was_issued(id)) {
      return Status(StatusCode::kNotFound, name_of(id) + " does not exist and never did");
    }
  }
  const auto rows = StoredResult::read(core.store, id);
  if (!rows.ok()) return rows.status();
  if (!*rows) {
    return Status(StatusCode::kExpired,
                  name_of(id) + " has ended and its record was acknowledged or deleted");
  }
  Execution stored;
  PartStatus user = PartStatus::kIntact;
  const Status read = decode_state((*rows)->state(), {}, stored, user);
  if (!read.ok()) return read.with_context("record of " + name_of(id));
  return entries_of(stored.record.history);
}

}  // namespace pv2
