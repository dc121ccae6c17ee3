// SPDX-License-Identifier: Apache-2.0
//
// The steps of CreateTable. Each step requests an effect under its effect key and goes on when the
// effect is there. After a crash the cluster sees the same key again and does nothing twice.

#include "pv2/procedures/create_table.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "pv2/procedures/assign_region.h"

namespace pv2 {
namespace {

// Longest name of a namespace, table or family: it becomes a file name, and most systems limit
// those to 255 bytes.
constexpr std::size_t kNameBytesMax = 200;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// Letters, digits and `_`; in a table or family also `-` and `.`, but not as the first character.
Status check_name(std::string_view what, std::string_view name, bool with_punctuation) {
  const auto legal = [&](char c) {
    return is_letter_or_digit(c) || c == '_' || (with_punctuation && (c == '-' || c == '.'));
  };
  if (name.empty() || name.size() > kNameBytesMax || !std::ranges::all_of(name, legal) ||
      name[0] == '-' || name[0] == '.') {
    return {StatusCode::kInvalidArgument,
            std::string(what) + " '" + std::string(name) + "' is not a legal name: use 1 to " +
                std::to_string(kNameBytesMax) + " letters, digits and '_'" +
                (with_punctuation ? ", also '-' and '.' but not in front" : "")};
  }
  return {};
}

}  // namespace

CreateTable::CreateTable(ClusterPorts& ports, TableDescriptor descriptor,
                         std::vector<std::string> split_keys)
    : ports_(&ports), descriptor_(std::move(descriptor)), split_keys_(std::move(split_keys)) {}

LockSet CreateTable::locks() const {
  return LockSet().table(descriptor_.name.name_space, descriptor_.name.table, LockMode::kExclusive);
}

CreateTable::Flow CreateTable::execute_from_state(CreateTableStep step, StepContext& ctx) {
  switch (step) {
    case CreateTableStep::kPreOperation:
      return pre_operation(ctx);
    case CreateTableStep::kWriteFsLayout:
      return write_fs_layout(ctx);
    case CreateTableStep::kAddToMeta:
      return add_to_meta(ctx);
    case CreateTableStep::kAssignRegions:
      return assign_regions(ctx);
    case CreateTableStep::kUpdateDescCache:
      return update_desc_cache(ctx);
    case CreateTableStep::kPostOperation:
      return post_operation(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.CreateTable has no such step"});
}

Status CreateTable::check_arguments() const {
  if (Status bad = check_name("namespace", descriptor_.name.name_space, false); !bad.ok())
    return bad;
  if (Status bad = check_name("table", descriptor_.name.table, true); !bad.ok()) return bad;
  const std::string table = to_string(descriptor_.name);
  if (descriptor_.families.empty()) {
    return {StatusCode::kInvalidArgument,
            "table " + table + " has no column family; name at least one"};
  }
  std::vector<std::string> families = descriptor_.families;
  for (const std::string& family : families) {
    if (Status bad = check_name("column family", family, true); !bad.ok()) return bad;
  }
  std::ranges::sort(families);
  if (const auto twice = std::ranges::adjacent_find(families); twice != families.end()) {
    return {StatusCode::kInvalidArgument,
            "table " + table + " names column family '" + *twice + "' twice"};
  }
  std::vector<std::string> keys = split_keys_;
  std::ranges::sort(keys);
  if (!keys.empty() && (keys.front().empty() || std::ranges::adjacent_find(keys) != keys.end())) {
    return {StatusCode::kInvalidArgument,
            "the split keys of table " + table + " must not be empty and not repeat"};
  }
  return {};
}

CreateTable::Flow CreateTable::pre_operation(StepContext& ctx) {
  if (Status bad = check_arguments(); !bad.ok()) return fail(std::move(bad));
  const auto* row = ctx.await<Result<std::optional<TableRow>>>(
      [&](auto done) { ports_->catalogue.read_table(descriptor_.name, std::move(done)); });
  if (row == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  if (row->value().has_value()) {
    return fail({StatusCode::kAlreadyExists,
                 "table " + to_string(descriptor_.name) + " exists already; choose another name"});
  }
  // Decided here and persisted with this step, so every later step and run uses the same regions.
  regions_ = regions_of(descriptor_.name, split_keys_, ctx.id().value);
  return next(CreateTableStep::kWriteFsLayout);
}

CreateTable::Flow CreateTable::write_fs_layout(StepContext& ctx) {
  const auto* written = ctx.await<Status>([&](auto done) {
    ports_->files.write_layout(descriptor_, regions_, ctx.effect_key() + "/layout",
                               std::move(done));
  });
  if (written == nullptr) return wait();
  if (!written->ok()) return retry(*written);
  return next(CreateTableStep::kAddToMeta);
}

CreateTable::Flow CreateTable::add_to_meta(StepContext& ctx) {
  const auto* added = ctx.await<Result<Applied>>([&](auto done) {
    CatalogueWrite write{ctx.effect_key() + "/regions", {}, {}, {}};
    for (const RegionInfo& region : regions_) {
      write.regions.push_back({region, RegionState::kClosed, {}, 0});
    }
    ports_->catalogue.write(std::move(write), std::move(done));
  });
  if (added == nullptr) return wait();
  if (!added->ok()) return retry(added->status());
  return next(CreateTableStep::kAssignRegions);
}

CreateTable::Flow CreateTable::assign_regions(StepContext& ctx) {
  const auto* enabling = ctx.await<Result<Applied>>([&](auto done) {
    ports_->catalogue.write({.effect_key = ctx.effect_key() + "/enabling",
                             .tables = {{descriptor_, TableState::kEnabling}},
                             .regions = {},
                             .servers = {}},
                            std::move(done));
  });
  if (enabling == nullptr) return wait();
  if (!enabling->ok()) return retry(enabling->status());
  std::uint32_t spread = 0;
  for (const RegionInfo& region : regions_) ctx.spawn(AssignRegion(*ports_, region, spread++));
  return next(CreateTableStep::kUpdateDescCache);
}

CreateTable::Flow CreateTable::update_desc_cache(StepContext& ctx) {
  const auto* enabled = ctx.await<Result<Applied>>([&](auto done) {
    ports_->catalogue.write({.effect_key = ctx.effect_key() + "/enabled",
                             .tables = {{descriptor_, TableState::kEnabled}},
                             .regions = {},
                             .servers = {}},
                            std::move(done));
  });
  if (enabled == nullptr) return wait();
  if (!enabled->ok()) return retry(enabled->status());
  const auto* refreshed = ctx.await<Status>(
      [&](auto done) { ports_->descriptors.refresh(descriptor_.name, std::move(done)); });
  if (refreshed == nullptr) return wait();
  if (!refreshed->ok()) return retry(*refreshed);
  return next(CreateTableStep::kPostOperation);
}

CreateTable::Flow CreateTable::post_operation(StepContext& ctx) {
  // Looks at the catalogue once more instead of trusting the answers that earlier steps were given.
  const auto* row = ctx.await<Result<std::optional<TableRow>>>(
      [&](auto done) { ports_->catalogue.read_table(descriptor_.name, std::move(done)); });
  if (row == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  if (!row->value() || row->value()->state != TableState::kEnabled) {
    return retry({StatusCode::kFailedPrecondition,
                  "table " + to_string(descriptor_.name) + " is not enabled in the catalogue"});
  }
  return done(to_string(descriptor_.name));
}

}  // namespace pv2
