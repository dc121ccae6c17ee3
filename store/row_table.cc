// SPDX-License-Identifier: Apache-2.0
//
// RowTable: a sorted map with an undo list. The old values are moved into that list instead of
// copied, so a unit that succeeds costs one map operation per row.

#include "row_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pv2 {

std::string full_key(Space space, std::string_view key) {
  std::string full;
  full.reserve(1 + key.size());
  full.push_back(static_cast<char>(space));
  full.append(key);
  return full;
}

std::string describe_key(std::string_view full_key) {
  if (full_key.empty()) return "row with an empty key";
  std::string text = fmt::format("row {} ", full_key.front());
  const std::string_view key = full_key.substr(1);
  const bool printable =
      std::all_of(key.begin(), key.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  if (printable) return text.append(key);
  for (const char c : key) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

Status RowTable::apply(const CommitList& unit) {
  std::vector<Undo> undo;
  Status status;
  unit.for_each([&](const CommitRequest& request) {
    request.batch.for_each(
        [&](RowOperation operation, Space space, std::string_view key, std::string_view value) {
          if (!status.ok()) return;
          status = apply_one(operation, full_key(space, key), value, request.sequence, undo);
        });
  });
  if (status.ok()) return status;

  for (auto change = undo.rbegin(); change != undo.rend(); ++change) {
    if (change->before) {
      rows_[change->key] = std::move(*change->before);
    } else {
      rows_.erase(change->key);
    }
  }
  return status;
}

Status RowTable::apply_one(RowOperation operation, std::string full_key, std::string_view value,
                           CommitSequence sequence, std::vector<Undo>& undo) {
  const auto at = rows_.find(full_key);
  const bool exists = at != rows_.end();
  if (operation == RowOperation::kInsert && exists) {
    return Status(StatusCode::kInternal,
                  fmt::format("commit {} inserts {}, which exists since commit {}", sequence.value,
                              describe_key(full_key), at->second.sequence.value));
  }
  if (operation == RowOperation::kUpdate && !exists) {
    return Status(StatusCode::kInternal, fmt::format("commit {} updates {}, which does not exist",
                                                     sequence.value, describe_key(full_key)));
  }

  std::optional<Row> before;
  if (exists) before = std::move(at->second);
  undo.push_back({full_key, std::move(before)});
  if (operation == RowOperation::kDelete) {
    if (exists) rows_.erase(at);
  } else if (exists) {
    at->second = Row{std::string(value), sequence};
  } else {
    rows_.emplace(std::move(full_key), Row{std::string(value), sequence});
  }
  return Status();
}

void RowTable::apply_unchecked(const RowBatch& batch, Space wanted, CommitSequence sequence) {
  batch.for_each(
      [&](RowOperation operation, Space space, std::string_view key, std::string_view value) {
        if (space != wanted) return;
        if (operation == RowOperation::kDelete) {
          erase(space, key);
        } else {
          put(space, key, value, sequence);
        }
      });
}

const RowTable::Row* RowTable::find(Space space, std::string_view key) const {
  const auto at = rows_.find(full_key(space, key));
  return at == rows_.end() ? nullptr : &at->second;
}

void RowTable::put(Space space, std::string_view key, std::string_view value,
                   CommitSequence sequence) {
  rows_.insert_or_assign(full_key(space, key), Row{std::string(value), sequence});
}

bool RowTable::erase(Space space, std::string_view key) {
  return rows_.erase(full_key(space, key)) != 0;
}

std::vector<RowTable::Copy> RowTable::copy_prefix(Space space, std::string_view prefix) const {
  const std::string begin = full_key(space, prefix);
  std::vector<Copy> copies;
  for (auto at = rows_.lower_bound(begin); at != rows_.end() && at->first.starts_with(begin);
       ++at) {
    copies.push_back({at->first, at->second});
  }
  return copies;
}

Status visit_copies(const std::vector<RowTable::Copy>& copies, const RowVisitor& visit) {
  for (const RowTable::Copy& copy : copies) {
    const std::string_view key = copy.key;
    Status status = visit(StoredRow{static_cast<Space>(key.front()), key.substr(1), copy.row.value,
                                    copy.row.sequence});
    if (!status.ok()) return status;
  }
  return Status();
}

}  // namespace pv2
