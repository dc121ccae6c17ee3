// SPDX-License-Identifier: Apache-2.0
//
// Mutations as new versions of cells. Numbers are decimal text without a plus sign.

#include "storage/write_computation.h"

#include <fmt/core.h>

#include <charconv>
#include <limits>

#include "storage/version_cell.h"

namespace pv2::cluster {
namespace {

std::string prefix_of(const Mutation& mutation) {
  return cell_prefix(CellSpace::kCells, mutation.row, mutation.family, mutation.qualifier);
}

std::string name_of(const Mutation& mutation) {
  return fmt::format("cell {}:{} of row {}", mutation.family, mutation.qualifier, mutation.row);
}

std::size_t bytes_of(const StoredCell& cell) {
  return cell.row.size() + cell.family.size() + cell.qualifier.size() + cell.value.size();
}

Status exceeds(std::string what, std::size_t most) {
  return {StatusCode::kInvalidArgument, fmt::format("{}, of at most {}: divide it", what, most)};
}

std::optional<std::int64_t> parse_decimal(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Status WriteComputation::apply(const Mutation& mutation) {
  const std::size_t before = values_.size();
  Status bad;
  switch (mutation.kind) {
    case MutationKind::kPut:
      set(mutation, CellKind::kPut, mutation.value);
      break;
    case MutationKind::kDelete:
      set(mutation, CellKind::kTombstone, {});
      break;
    case MutationKind::kDeleteRow:
      bad = delete_row(mutation.row);
      break;
    case MutationKind::kAppend:
      bad = append(mutation);
      break;
    case MutationKind::kIncrement:
      bad = increment(mutation);
      break;
    case MutationKind::kReplicatedPut:
      bad = replicate(mutation, CellKind::kPut);
      break;
    case MutationKind::kReplicatedDelete:
      bad = replicate(mutation, CellKind::kTombstone);
      break;
  }
  if (values_.size() > before) result_bytes_ += values_.back().size();
  values_.resize(before + 1);
  return bad.ok() ? check_effect() : bad;
}

Status WriteComputation::check_effect() const {
  if (changed_cells_ > kMutationsMax)
    return exceeds(fmt::format("a write changes {} cells or more", changed_cells_), kMutationsMax);
  if (changed_bytes_ > kWriteBytesMax)
    return exceeds(fmt::format("a write changes {} bytes or more", changed_bytes_), kWriteBytesMax);
  if (result_bytes_ > kResultBytesMax)
    return exceeds(fmt::format("the result of a write has {} bytes or more", result_bytes_),
                   kResultBytesMax);
  return {};
}

void WriteComputation::change(const std::string& prefix, StoredCell cell) {
  const auto [place, is_new] = changed_.try_emplace(prefix);
  if (cell.space == CellSpace::kCells) {
    changed_cells_ += is_new ? 1 : 0;
    changed_bytes_ += bytes_of(cell);
    if (!is_new) changed_bytes_ -= bytes_of(place->second);
  }
  place->second = std::move(cell);
}

std::vector<StoredCell> WriteComputation::cells() const {
  std::vector<StoredCell> cells;
  for (const auto& [key, cell] : changed_) cells.push_back(cell);
  return cells;
}

void WriteComputation::set(const Mutation& mutation, CellKind kind, std::string value) {
  change(prefix_of(mutation), {.row = mutation.row,
                               .family = mutation.family,
                               .qualifier = mutation.qualifier,
                               .kind = kind,
                               .value = std::move(value)});
}

Result<std::optional<std::string>> WriteComputation::newest(const std::string& prefix) {
  if (const auto changed = changed_.find(prefix); changed != changed_.end()) {
    if (changed->second.kind == CellKind::kTombstone) return std::optional<std::string>();
    return std::optional(changed->second.value);
  }
  // The first key of a cell is that of its newest version. Behind the cell nothing is looked at.
  const std::unique_ptr<CellCursor> all = all_cells_();
  all->seek(prefix);
  if (!all->status().ok()) return all->status();
  if (!all->valid() || prefix_of_key(all->key()) != prefix) return std::optional<std::string>();
  const bool is_deleted = all->value()[0] == static_cast<char>(CellKind::kTombstone);
  if (is_deleted) return std::optional<std::string>();
  return std::optional<std::string>(all->value().substr(1));
}

Status WriteComputation::append(const Mutation& mutation) {
  Result<std::optional<std::string>> old = newest(prefix_of(mutation));
  if (!old.ok()) return old.status();
  std::string value = (*old).value_or(std::string()) + mutation.value;
  if (value.size() > kValueBytesMax)
    return {StatusCode::kInvalidArgument,
            fmt::format("{} would have {} bytes of at most {}", name_of(mutation), value.size(),
                        kValueBytesMax)};
  set(mutation, CellKind::kPut, value);
  values_.push_back(std::move(value));
  return {};
}

Status WriteComputation::increment(const Mutation& mutation) {
  const Result<std::optional<std::string>> old = newest(prefix_of(mutation));
  if (!old.ok()) return old.status();
  const std::optional<std::int64_t> number = *old ? parse_decimal(**old) : 0;
  if (!number)
    return {StatusCode::kInvalidArgument, name_of(mutation) + " is not a decimal number"};
  std::int64_t sum = 0;
  if (__builtin_add_overflow(*number, mutation.amount, &sum))
    return {StatusCode::kInvalidArgument, name_of(mutation) + " would leave 64 bits"};
  set(mutation, CellKind::kPut, std::to_string(sum));
  values_.push_back(std::to_string(sum));
  return {};
}

Status WriteComputation::replicate(const Mutation& mutation, CellKind kind) {
  const std::string prefix =
      cell_prefix(CellSpace::kVersions, mutation.row, mutation.family, mutation.qualifier);
  const Result<std::optional<std::string>> known = newest(prefix);
  if (!known.ok()) return known.status();
  VersionCell versions;
  if (*known) {
    auto decoded = decode_versions(**known);
    if (!decoded) return {StatusCode::kCorruption, name_of(mutation) + " has no readable version"};
    versions = *std::move(decoded);
  }
  if (!versions.advance(sender_, mutation.version)) return {};
  set(mutation, kind, kind == CellKind::kPut ? mutation.value : std::string());
  change(prefix, {.space = CellSpace::kVersions,
                  .row = mutation.row,
                  .family = mutation.family,
                  .qualifier = mutation.qualifier,
                  .value = encode_versions(std::move(versions))});
  return {};
}

Status WriteComputation::look_at(const std::string& row) {
  if (++deletion_looks_ <= kMutationsMax) return {};
  return {
      StatusCode::kInvalidArgument,
      fmt::format("the deletions of rows in a write look at more than {} cells (row {}): delete "
                  "the cells of wide rows by themselves",
                  kMutationsMax, row)};
}

Status WriteComputation::delete_row(const std::string& row) {
  const std::string start = row_key(CellSpace::kCells, row);
  for (auto at = changed_.lower_bound(start); at != changed_.end() && at->first.starts_with(start);
       ++at) {
    if (Status bad = look_at(row); !bad.ok()) return bad;
    StoredCell& cell = at->second;
    changed_bytes_ -= cell.value.size();
    cell.kind = CellKind::kTombstone;
    cell.value.clear();
  }
  // What was there before the write is deleted by the first deletion.
  if (!deleted_rows_.insert(row).second) return {};
  // The row after this one is this one with a zero byte.
  NewestCells cells(all_cells_(), row_key(CellSpace::kCells, row + std::string(1, '\0')),
                    std::numeric_limits<std::uint64_t>::max(), looks_max_);
  for (cells.seek(start); cells.valid(); cells.next()) {
    if (cells.is_spent()) {
      return {StatusCode::kFailedPrecondition,
              fmt::format("row {} has too many deleted cells: compact its region first", row)};
    }
    if (Status bad = look_at(row); !bad.ok()) return bad;
    std::optional<DecodedCell> decoded = decode_cell(cells.key(), cells.value());
    if (!decoded) return {StatusCode::kCorruption, "row " + row + " has a key that is no cell"};
    decoded->cell.kind = CellKind::kTombstone;
    decoded->cell.value.clear();
    change(std::string(prefix_of_key(cells.key())), std::move(decoded->cell));
    if (Status bad = check_effect(); !bad.ok()) return bad;
  }
  return cells.status();
}

}  // namespace pv2::cluster
