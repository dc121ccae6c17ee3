// SPDX-License-Identifier: Apache-2.0
//
// The steps of CreateTable. Each step requests an effect under its effect key and goes on when the
// effect is there. After a crash the cluster sees the same key again and does nothing twice.

#include "pv2/procedures/create_table.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "pv2/procedures/transit_region_state.h"

namespace pv2 {
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
  if (Status bad = check_descriptor(descriptor_); !bad.ok()) return bad;
  const std::string table = to_string(descriptor_.name);
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
    CatalogueWrite write{.effect_key = ctx.effect_key() + "/regions"};
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
    ports_->catalogue.write(
        {
            .effect_key = ctx.effect_key() + "/enabling",
            .tables = {{descriptor_, TableState::kEnabling}},
        },
        std::move(done));
  });
  if (enabling == nullptr) return wait();
  if (!enabling->ok()) return retry(enabling->status());
  std::uint32_t spread = 0;
  for (const RegionInfo& region : regions_)
    ctx.spawn(TransitRegionState::assign(*ports_, region, {.spread = spread++}));
  return next(CreateTableStep::kUpdateDescCache);
}

CreateTable::Flow CreateTable::update_desc_cache(StepContext& ctx) {
  const auto* enabled = ctx.await<Result<Applied>>([&](auto done) {
    ports_->catalogue.write(
        {
            .effect_key = ctx.effect_key() + "/enabled",
            .tables = {{descriptor_, TableState::kEnabled}},
        },
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
