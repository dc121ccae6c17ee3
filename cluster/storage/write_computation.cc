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
  values_.resize(before + 1);
  return bad;
}

std::vector<StoredCell> WriteComputation::cells() const {
  std::vector<StoredCell> cells;
  for (const auto& [key, cell] : changed_) cells.push_back(cell);
  return cells;
}

NewestCells WriteComputation::walk() const {
  return {all_cells_(), std::numeric_limits<std::uint64_t>::max()};
}

void WriteComputation::set(const Mutation& mutation, CellKind kind, std::string value) {
  changed_[prefix_of(mutation)] = {.row = mutation.row,
                                   .family = mutation.family,
                                   .qualifier = mutation.qualifier,
                                   .kind = kind,
                                   .value = std::move(value)};
}

Result<std::optional<std::string>> WriteComputation::newest(const std::string& prefix) {
  if (const auto changed = changed_.find(prefix); changed != changed_.end()) {
    if (changed->second.kind == CellKind::kTombstone) return std::optional<std::string>();
    return std::optional(changed->second.value);
  }
  NewestCells cells = walk();
  cells.seek(prefix);
  if (!cells.status().ok()) return cells.status();
  if (!cells.valid() || prefix_of_key(cells.key()) != prefix) return std::optional<std::string>();
  return std::optional<std::string>(cells.value().substr(1));
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
  changed_[prefix] = {.space = CellSpace::kVersions,
                      .row = mutation.row,
                      .family = mutation.family,
                      .qualifier = mutation.qualifier,
                      .value = encode_versions(std::move(versions))};
  return {};
}

Status WriteComputation::delete_row(const std::string& row) {
  for (auto& [key, cell] : changed_) {
    if (cell.row != row || cell.space != CellSpace::kCells) continue;
    cell.kind = CellKind::kTombstone;
    cell.value.clear();
  }
  NewestCells cells = walk();
  const std::string start = row_key(CellSpace::kCells, row);
  for (cells.seek(start); cells.valid() && cells.key().starts_with(start); cells.next()) {
    std::optional<DecodedCell> decoded = decode_cell(cells.key(), cells.value());
    if (!decoded) return {StatusCode::kCorruption, "row " + row + " has a key that is no cell"};
    decoded->cell.kind = CellKind::kTombstone;
    decoded->cell.value.clear();
    changed_[std::string(prefix_of_key(cells.key()))] = std::move(decoded->cell);
  }
  return cells.status();
}

}  // namespace pv2::cluster
