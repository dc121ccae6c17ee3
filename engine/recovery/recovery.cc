// SPDX-License-Identifier: Apache-2.0
//
// load() is the recipe; each ingredient has a file of its own.

#include "recovery/recovery.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/effects.h"
#include "core/state_lock.h"
#include "model/names.h"
#include "records/limit_row.h"
#include "records/row_keys.h"
#include "records/schema_rows.h"
#include "records/watermark.h"
#include "recovery/chunked_scan.h"
#include "recovery/load_section.h"
#include "recovery/restarted_trees.h"
#include "recovery/set_aside_records.h"

namespace pv2 {
namespace {

// Whether a live procedure has one of the next ids, which begin with `first`. True also if the
// store cannot be read. One scan looks at 65 536 ids: their keys have the same first six bytes.
bool has_record_of_next(ProcedureStore& store, ProcedureId first) {
  constexpr unsigned kShift = 16;
  const std::uint64_t end = first.value + ProcedureIds::kBlock;
  for (std::uint64_t block = first.value >> kShift; block <= end >> kShift; ++block) {
    const FixedKey<8> key = result_key({block << kShift});
    const std::string_view prefix(key.bytes.data(), key.bytes.size() - kShift / 8);
    const Status found = store.scan(Space::kProcedure, prefix, [&](const StoredRow& row) {
      if (id_in_key(row.key) < first) return Status();
      return Status(StatusCode::kFailedPrecondition, "there is one");
    });
    if (!found.ok()) return true;
  }
  return false;
}

Status in_context(const EngineCore& core, const Status& status) {
  return status.with_context("loading " + core.store_name);
}

}  // namespace

Status Recovery::begin() {
  Status status = read_watermark();
  if (status.ok()) status = read_limits();
  if (status.ok()) status = schemas_.read(core_.store);
  return status.ok() ? status : in_context(core_, status);
}

// Every id below the watermark may have been issued, and may be in somebody's log. From there on
// none was, so new procedures need not wait for the highest id that is read. If there is a record
// nevertheless, ids go on above it, as everything is loaded first.
bool Recovery::let_submissions_in(Effects& effects) {
  if (!core_.keeps_records || schemas_.differ(core_)) return false;
  const ProcedureId watermark = durable_watermark();
  if (!watermark || has_record_of_next(core_.store, watermark)) return false;
  StateLock lock(core_);
  if (!schemas_.check(core_, effects).ok()) return false;  // load() says why
  core_.state.ids.begin(ProcedureId());
  core_.state.submissions.store_knows_more_nonces = true;
  first_new_ = ProcedureId{core_.state.ids.first()};
  return true;
}

ProcedureId Recovery::durable_watermark() {
  StateLock lock(core_, Width::kNarrow);
  return ProcedureId{core_.state.ids.durable_watermark()};
}

Status Recovery::load(Effects& effects) {
  Status status = read_procedures();
  if (!status.ok()) return in_context(core_, status);
  const FlatMap<ProcedureId, Execution*> stand_ins = trees_.stand_ins();
  {
    StateLock lock(core_);
    if (!first_new_) {
      status = schemas_.check(core_, effects);
      if (!status.ok()) return status;
      core_.state.ids.begin(highest_);
      const bool is_new = core_.state.ids.durable_watermark() == 0;
      if (core_.keeps_records && !is_new) core_.state.submissions.store_knows_more_nonces = true;
    }
    freeze_relatives(core_, trees_);
    tell_of_set_aside(core_, effects);
    leftovers_.keep_rows_of(stand_ins);
    leftovers_.delete_orphans(effects);
    dates_.write(core_, effects);
    leftovers_.delete_members(core_, effects);
    quarantine_problems(core_, trees_, effects);
    end_load_section(core_);
  }
  return restart_trees(core_, trees_, effects);
}

Status Recovery::read_procedures() {
  Status status;
  {
    ChunkedScan scan(core_, first_new_, [this](ReadRecords read) { return link(std::move(read)); });
    status = scan.run();
    if (status.ok()) status = check_new_ids(scan.highest_passed_over());
  }
  if (status.ok()) status = trees_.find_lost_nonces(core_);
  if (status.ok()) status = dates_.read(core_);
  return status;
}

// The scan has passed over what was submitted meanwhile, and nothing else.
Status Recovery::check_new_ids(ProcedureId highest) {
  StateLock lock(core_, Width::kNarrow);
  if (!highest || core_.state.ids.was_issued(highest)) return Status();
  return Status(StatusCode::kCorruption, "there is a record of " + name_of(highest) +
                                             ", but the store says that no id from " +
                                             std::to_string(core_.state.ids.first()) +
                                             " on was issued before");
}

Status Recovery::read_watermark() {
  const auto row = core_.store.get(Space::kEngine, kWatermarkKey);
  if (!row.ok()) return row.status();
  if (!*row) return check_is_new();
  const auto watermark = decode_watermark(**row);
  if (!watermark.ok()) return watermark.status();
  core_.age.go_on_from(watermark->age);
  StateLock lock(core_);
  core_.state.ids.load_watermark(watermark->next_id);
  return Status();
}

// The watermark is durable before the first id is issued. Without it, ids would be issued again,
// and nonces that only the store has would count as unused. A row of a limit may be there without
// it, and so may rows of the host.
Status Recovery::check_is_new() {
  constexpr std::pair<Space, std::string_view> kProofs[] = {{Space::kProcedure, ""},
                                                            {Space::kResult, ""},
                                                            {Space::kNonce, ""},
                                                            {Space::kEngine, kSchemaKeyPrefix}};
  for (const auto& [space, prefix] : kProofs) {
    Status looked = core_.store.scan(space, prefix, [](const StoredRow&) {
      return Status(StatusCode::kCorruption,
                    "the row of the next id (next_id) is missing, though there are procedures, "
                    "results, nonces or schemas of types; restore the store from a backup");
    });
    if (!looked.ok()) return looked;
  }
  return Status();
}

Status Recovery::read_limits() {
  return core_.store.scan(Space::kEngine, kLimitKeyPrefix, [this](const StoredRow& found) {
    const auto key = parse_limit_key(found.key);
    if (!key) return Status();
    const auto limit = decode_limit(found.value);
    if (!limit.ok()) return limit.status();
    StateLock lock(core_);
    core_.set_limit(*key, *limit);
    return Status();
  });
}

Status Recovery::link(ReadRecords read) {
  highest_ = std::max(highest_, read.highest);
  leftovers_.add_orphans(std::move(read.orphans));
  if (Status status = ended_roots_.ask_about(core_, read); !status.ok()) return status;
  {
    StateLock lock(core_);
    set_aside(core_, std::move(read.unreadable));
  }
  for (const EndedRoot& root : read.ended_roots) {
    ended_roots_.add(root.id);
    dates_.add(root);
  }
  for (auto left = std::span(read.procedures); !left.empty();) {
    if (Status halted = why_halted(core_); !halted.ok()) return halted;
    const auto some = left.first(std::min(left.size(), kLoadSection));
    left = left.subspan(some.size());
    StateLock lock(core_);
    for (LoadedProcedure& loaded : some) link(loaded);
    trees_.restore_locks(core_);
  }
  StateLock lock(core_);
  for (AuditCopy& copy : read.audit_copies) {  // of a root with a lower id, which was linked
    const bool root_is_there = ended_roots_.has_ended(copy.root) ||
                               core_.find(copy.root) != nullptr ||
                               core_.state.unreadable.contains(copy.root);
    leftovers_.add_copy(std::move(copy), root_is_there);
  }
  return Status();
}

void Recovery::link(LoadedProcedure& loaded) {
  if (ended_roots_.has_ended(loaded.root)) {
    leftovers_.add_of_ended_root(loaded);
  } else if (trees_.has_left(core_, loaded)) {
    leftovers_.add_of_live_root(loaded);
  } else {
    trees_.link(core_, loaded);
  }
}

}  // namespace pv2
