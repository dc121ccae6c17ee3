// SPDX-License-Identifier: Apache-2.0
//
// The steps of CreateTable. Each step requests an effect under its effect key and goes on when the
// effect is there. After a crash the cluster sees the same key again and does nothing twice.

#include "pv2/procedures/create_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "pv2/procedures/catalogue_limits.h"
#include "pv2/procedures/transit_region_state.h"
#include "table_steps.h"

namespace pv2 {
namespace {

// As many as even_split_keys() makes; each region is a child and a lock.
constexpr std::size_t kRegionsMax = 65536;

}  // namespace

CreateTable::CreateTable(ClusterPorts& ports, TableDescriptor descriptor,
                         std::vector<std::string> split_keys)
    : ports_(&ports), descriptor_(std::move(descriptor)), split_keys_(std::move(split_keys)) {}

CreateTable CreateTable::of_system(ClusterPorts& ports, TableDescriptor descriptor,
                                   std::vector<std::string> split_keys) {
  CreateTable procedure(ports, std::move(descriptor), std::move(split_keys));
  procedure.internal_ = true;
  return procedure;
}

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
  if (Status bad = check_descriptor(descriptor_); !bad.ok()) return bad;
  const std::string table = to_string(descriptor_.name);
  if (is_meta(descriptor_.name) ||
      (descriptor_.name.name_space == kSystemNamespace && !internal_)) {
    return {StatusCode::kFailedPrecondition,
            "table " + table + " would be in namespace '" + std::string(kSystemNamespace) +
                "', which is for the cluster's own tables; choose another namespace"};
  }
  if (split_keys_.size() >= kRegionsMax) {
    return {StatusCode::kInvalidArgument, "table " + table + " would have more than " +
                                              std::to_string(kRegionsMax) +
                                              " regions; give fewer split keys"};
  }
  std::vector<std::string> keys = split_keys_;
  std::ranges::sort(keys);
  for (const std::string& key : keys) {
    if (Status bad = check_row_key("table " + table, key); !bad.ok()) return bad;
  }
  if (!keys.empty() && (keys.front().empty() || std::ranges::adjacent_find(keys) != keys.end())) {
    return {StatusCode::kInvalidArgument,
            "the split keys of table " + table + " must not be empty and not repeat"};
  }
  return {};
}

CreateTable::Flow CreateTable::pre_operation(StepContext& ctx) {
  if (Status bad = check_arguments(); !bad.ok()) return fail(std::move(bad));
  const std::string& name_space = descriptor_.name.name_space;
  const auto* home = internal::read_namespace(ctx, *ports_, name_space);
  const auto* row = internal::read_table(ctx, *ports_, descriptor_.name);
  const auto* others = internal::tables_of(ctx, *ports_, name_space);
  if (home == nullptr || row == nullptr || others == nullptr) return wait();
  if (!home->ok()) return retry(home->status());
  if (!row->ok()) return retry(row->status());
  if (!others->ok()) return retry(others->status());
  if (!home->value()) {
    return fail({StatusCode::kNotFound, "namespace " + name_space + " of table " +
                                            to_string(descriptor_.name) +
                                            " does not exist; create it first"});
  }
  if (row->value()) {
    return fail({StatusCode::kAlreadyExists,
                 "table " + to_string(descriptor_.name) + " exists already; choose another name"});
  }
  const std::uint64_t limit = home->value()->max_tables;
  if (limit != 0 && others->value().size() >= limit) {
    return fail({StatusCode::kFailedPrecondition,
                 "namespace " + name_space + " has " + std::to_string(others->value().size()) +
                     " tables and may have " + std::to_string(limit) +
                     "; delete one, or modify the namespace"});
  }
  // Decided here and persisted with this step, so every later step and run uses the same regions.
  regions_ = regions_of(descriptor_.name, split_keys_, ctx.id().value);
  if (Status bad = internal::check_regions(regions_); !bad.ok()) return fail(std::move(bad));
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
  // A CreateTable that an operator has ended may have left rows of other regions.
  const auto removed =
      internal::remove_region_rows(ctx, *ports_, descriptor_.name, /*kept=*/regions_);
  if (!removed) return wait();
  if (!removed->ok()) return retry(*removed);
  const auto* added = internal::write(ctx, *ports_, "regions", internal::add_closed(regions_));
  if (added == nullptr) return wait();
  if (!added->ok()) return retry(added->status());
  return next(CreateTableStep::kAssignRegions);
}

CreateTable::Flow CreateTable::assign_regions(StepContext& ctx) {
  const auto* enabling = internal::write(ctx, *ports_, "enabling",
                                         internal::set_table(descriptor_, TableState::kEnabling));
  if (enabling == nullptr) return wait();
  if (!enabling->ok()) return retry(enabling->status());
  internal::SpawnRound round;
  for (; assigned_ < regions_.size() && round.takes(regions_[assigned_]); ++assigned_) {
    ctx.spawn(TransitRegionState::assign(*ports_, regions_[assigned_], {.spread = assigned_}));
  }
  return next(assigned_ < regions_.size() ? CreateTableStep::kAssignRegions
                                          : CreateTableStep::kUpdateDescCache);
}

CreateTable::Flow CreateTable::update_desc_cache(StepContext& ctx) {
  const auto* enabled = internal::write(ctx, *ports_, "enabled",
                                        internal::set_table(descriptor_, TableState::kEnabled));
  if (enabled == nullptr) return wait();
  if (!enabled->ok()) return retry(enabled->status());
  const auto* refreshed = internal::refresh_cache(ctx, *ports_, descriptor_.name);
  if (refreshed == nullptr) return wait();
  if (!refreshed->ok()) return retry(*refreshed);
  return next(CreateTableStep::kPostOperation);
}

CreateTable::Flow CreateTable::post_operation(StepContext& ctx) {
  // Looks at the catalogue once more instead of trusting the answers that earlier steps were given.
  const auto* row = internal::read_table(ctx, *ports_, descriptor_.name);
  if (row == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  if (Status bad = internal::check_is(descriptor_.name, row->value(), TableState::kEnabled);
      !bad.ok()) {
    return retry(std::move(bad));
  }
  return done(to_string(descriptor_.name));
}

}  // namespace pv2
