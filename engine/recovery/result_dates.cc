// SPDX-License-Identifier: Apache-2.0
//
// A root that an older program recorded may have been dated by a later one since. Such a date says
// that it was found (KeptResult::found); it is stale if the root is not there any more.

#include "recovery/result_dates.h"

#include <memory>
#include <utility>

#include "core/effects.h"
#include "core/state_lock.h"
#include "pv2/engine/executor_options.h"
#include "records/kept_result.h"
#include "records/row_keys.h"
#include "recovery/load_section.h"

namespace pv2 {
namespace {

void count(EngineCore& core, const KeptResult& kept) PV2_EXCLUDES(core.state_mutex) {
  StateLock lock(core);
  if (core.find(kept.id) != nullptr) return;  // an abort takes its end back
  core.state.submissions.retention.kept(kept.id, kept.age, kept.bytes);
  if (kept.nonce) ++core.state.submissions.nonces_on_disk_only;
}

}  // namespace

void ResultDates::add(const EndedRoot& root) {
  if (root.age == Progress::kNotDated) undated_.push_back(root);
}

Status ResultDates::read(EngineCore& core) {
  const RetentionPolicy& policy = core.options.retention;
  const bool is_limited = policy.max_keyed_results != 0 || policy.max_bytes != 0;
  if (!core.keeps_records || (!is_limited && undated_.empty())) return Status();
  FlatMap<ProcedureId, bool> undated;
  for (const EndedRoot& root : undated_) undated.emplace(root.id, true);
  Status status = core.store.scan(Space::kEngine, kKeptKeyPrefix, [&](const StoredRow& row) {
    if (Status halted = why_halted(core); !halted.ok()) return halted;
    const auto kept = decode_kept(row.key, row.value);
    if (!kept.ok()) return Status();  // damaged: its result stays until it is acknowledged
    if (kept->found && undated.erase(kept->id) == 0) {
      stale_.emplace_back(row.key);  // its result was acknowledged since
    } else {
      count(core, *kept);
    }
    return Status();
  });
  std::erase_if(undated_, [&](const EndedRoot& root) { return !undated.contains(root.id); });
  for (const EndedRoot& root : undated_) {
    count(core, {.age = root.age, .id = root.id, .nonce = root.nonce, .bytes = root.bytes});
  }
  return status;
}

void ResultDates::write(const EngineCore& core, Effects& effects) {
  if (undated_.empty() && stale_.empty()) return;
  auto garbage = std::make_unique<GarbageCommit>();
  for (std::string& key : stale_) garbage->engine_rows.emplace_back(std::move(key), "");
  for (const EndedRoot& root : undated_) {
    const KeptResult kept{core.age.now(), root.id, root.nonce, root.bytes, true};
    auto& [key, row] =
        garbage->engine_rows.emplace_back(std::string_view(kept_key(kept.age, kept.id)), "");
    encode_kept(kept, row);
  }
  effects.garbage.push_back(std::move(garbage));
}

}  // namespace pv2
