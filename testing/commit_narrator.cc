// SPDX-License-Identifier: Apache-2.0
//
// A record of a procedure is a row of Space::kProcedure whose key begins with the id, big-endian
// (docs/store-format.md); the last record of a root is a row of Space::kResult. A batch that
// updates one record and inserts others is a step that spawns children.

#include "commit_narrator.h"

#include <fmt/format.h>
#include <pv2/engine/inspection.h>

#include <set>

#include "row_id.h"

namespace pv2::testing {
namespace {

// The key of a message is the key of the record followed by the number of the message.
constexpr std::size_t kRecordKeyBytes = 9;

}  // namespace

void CommitNarrator::note(std::size_t n, const RowBatch& batch) {
  std::set<std::uint64_t> inserted;
  std::set<std::uint64_t> deleted;
  ProcedureId updated;
  ProcedureId message_to;
  batch.for_each([&](RowOperation operation, Space space, std::string_view key, std::string_view) {
    if (space == Space::kResult && operation == RowOperation::kPut) updated = id_in(key);
    if (space != Space::kProcedure) return;
    if (key.size() > kRecordKeyBytes) {
      if (operation == RowOperation::kInsert) message_to = id_in(key);
      return;
    }
    if (operation == RowOperation::kInsert) inserted.insert(id_in(key).value);
    if (operation == RowOperation::kUpdate) updated = id_in(key);
    if (operation == RowOperation::kDelete) deleted.insert(id_in(key).value);
  });
  const ProcedureId subject =
      updated || inserted.empty() ? updated : ProcedureId{*inserted.begin()};
  const auto before = executor_.inspect().describe(subject);
  std::string& words = words_[n];
  if (message_to) {
    words = fmt::format("a message to procedure {}", message_to.value);
    return;
  }
  if (!before.ok()) {
    words = deleted.empty() ? "a fact of the engine" : "rows that are not needed any more";
    return;
  }
  const std::string who = fmt::format("{}, procedure {}", before->type, subject.value);
  if (!updated) {
    words = "the submission of " + who;
  } else if (before->state == ProcedureState::kFailed) {
    words = "an undo of " + who;
    undoing_.emplace_back(n, *before);
  } else if (before->step == 0) {
    words = "the end of " + who;
  } else {
    words = fmt::format("step {} of {}", step_name(before->type, before->step), who);
    if (!inserted.empty()) words += fmt::format(", with {} new children", inserted.size());
  }
}

void CommitNarrator::settle() {
  for (const auto& [n, before] : undoing_) {
    const auto now = executor_.inspect().describe(before.id);
    if (!now.ok() || now->history.empty()) continue;
    words_[n] =
        fmt::format("the undo of step {} of {}, procedure {}",
                    step_name(before.type, now->history.back().step), before.type, before.id.value);
  }
  undoing_.clear();
}

std::string CommitNarrator::words(std::size_t n) const {
  const auto at = words_.find(n);
  return at == words_.end() ? std::string() : at->second;
}

std::string CommitNarrator::step_name(const std::string& type, std::uint32_t step) const {
  const ProcedureType* const known = types_.find(type);
  const StepInfo* const info = known != nullptr ? known->find_step(step) : nullptr;
  return info != nullptr ? std::string(info->name) : std::to_string(step);
}

}  // namespace pv2::testing
