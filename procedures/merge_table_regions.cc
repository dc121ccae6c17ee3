// SPDX-License-Identifier: Apache-2.0
//
// The steps of MergeTableRegions, and the undo of two of them. An undo finds out by itself which
// parents were closed: nothing that it needs is kept in memory.

#include "pv2/procedures/merge_table_regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "pv2/procedures/transit_region_state.h"
#include "region_reopening.h"
#include "stable_hash.h"

namespace pv2 {
MergeTableRegions::MergeTableRegions(ClusterPorts& ports, std::vector<RegionInfo> parents)
    : ports_(&ports), parents_(std::move(parents)) {
  std::ranges::sort(parents_, {}, &RegionInfo::start_key);
}

RegionInfo MergeTableRegions::merged() const {
  std::string text;
  for (const RegionInfo& parent : parents_) text += parent.id + ' ';
  const std::string id = fmt::format("{:016x}", internal::stable_hash("merged " + text));
  if (parents_.empty()) return {{}, id, "", ""};
  return {parents_.front().table, id, parents_.front().start_key, parents_.back().end_key};
}

LockSet MergeTableRegions::locks() const {
  LockSet locks;
  std::vector<RegionInfo> regions = parents_;
  regions.push_back(merged());
  for (const RegionInfo& region : regions) {
    locks.region(region.table.name_space, region.table.table, region.id, LockMode::kExclusive);
  }
  return locks;
}

MergeTableRegions::Flow MergeTableRegions::execute_from_state(Step step, StepContext& ctx) {
  switch (step) {
    case Step::kPrepare:
      return prepare(ctx);
    case Step::kCloseRegions:
      return close_regions(ctx);
    case Step::kCheckClosedRegions:
      return check_closed_regions(ctx);
    case Step::kCreateMergedRegion:
      return create_merged_region(ctx);
    case Step::kWriteMaxSequenceIdFile:
      return write_max_sequence_id_file(ctx);
    case Step::kUpdateMeta:
      return update_meta(ctx);
    case Step::kOpenMergedRegion:
      return open_merged_region(ctx);
    case Step::kPostOperation:
      return post_operation(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.MergeTableRegions has no such step"});
}

MergeTableRegions::Flow MergeTableRegions::rollback_state(Step step, StepContext& ctx) {
  switch (step) {
    case Step::kCloseRegions:
      return reopen_parents(ctx);
    case Step::kCreateMergedRegion:
      return remove_merged(ctx);
    case Step::kPrepare:
    case Step::kCheckClosedRegions:
    case Step::kWriteMaxSequenceIdFile:
    case Step::kUpdateMeta:
    case Step::kOpenMergedRegion:
    case Step::kPostOperation:
      break;
  }
  return undone();
}

Status MergeTableRegions::check_arguments() const {
  if (parents_.size() < 2) {
    return {StatusCode::kInvalidArgument, "a merge takes two regions or more"};
  }
  if (is_meta(parents_.front().table)) {
    return {StatusCode::kFailedPrecondition, "the catalogue has one region, for ever"};
  }
  for (std::size_t i = 1; i < parents_.size(); ++i) {
    const RegionInfo& before = parents_[i - 1];
    const RegionInfo& after = parents_[i];
    if (after.table != before.table) {
      return {StatusCode::kInvalidArgument, to_string(before) + " and " + to_string(after) +
                                                " cannot be merged: they are of different tables"};
    }
    // This also finds a region that is named twice.
    if (before.end_key.empty() || before.end_key != after.start_key) {
      return {StatusCode::kInvalidArgument, to_string(before) + " and " + to_string(after) +
                                                " cannot be merged: they are no neighbours"};
    }
  }
  return {};
}

Status MergeTableRegions::check_parent(const RegionInfo& parent,
                                       const std::optional<RegionRow>& row) const {
  if (!row || row->region != parent) {
    return {StatusCode::kNotFound, to_string(parent) + " is not in the catalogue with these keys"};
  }
  if (row->state != RegionState::kOpen) {
    return {StatusCode::kFailedPrecondition, to_string(parent) + " is " +
                                                 std::string(to_string(row->state)) +
                                                 "; only open regions can be merged"};
  }
  return {};
}

MergeTableRegions::Flow MergeTableRegions::prepare(StepContext& ctx) {
  if (Status bad = check_arguments(); !bad.ok()) return fail(std::move(bad));
  const TableName& name = parents_.front().table;
  const auto* table = ctx.await<Result<std::optional<TableRow>>>(
      [&](auto done) { ports_->catalogue.read_table(name, std::move(done)); });
  if (table == nullptr) return wait();
  if (!table->ok()) return retry(table->status());
  if (!table->value()) {
    return fail({StatusCode::kNotFound, "there is no table " + to_string(name)});
  }
  if (table->value()->state != TableState::kEnabled) {
    return fail(
        {StatusCode::kFailedPrecondition, "table " + to_string(name) + " is " +
                                              std::string(to_string(table->value()->state)) +
                                              "; only regions of an enabled table are merged"});
  }
  for (const RegionInfo& parent : parents_) {
    const auto* row = ctx.await<Result<std::optional<RegionRow>>>(
        [&](auto done) { ports_->catalogue.read_region(parent.id, std::move(done)); });
    if (row == nullptr) return wait();
    if (!row->ok()) return retry(row->status());
    if (Status bad = check_parent(parent, row->value()); !bad.ok()) return fail(std::move(bad));
  }
  const auto* other = ctx.await<Result<std::optional<RegionRow>>>(
      [&](auto done) { ports_->catalogue.read_region(merged().id, std::move(done)); });
  if (other == nullptr) return wait();
  if (!other->ok()) return retry(other->status());
  if (other->value()) {
    return fail({StatusCode::kAlreadyExists, "there is a region " + merged().id + " already"});
  }
  return next(Step::kCloseRegions);
}

MergeTableRegions::Flow MergeTableRegions::close_regions(StepContext& ctx) {
  for (const RegionInfo& parent : parents_) {
    ctx.spawn(TransitRegionState::unassign(*ports_, parent));
  }
  return next(Step::kCheckClosedRegions);
}

MergeTableRegions::Flow MergeTableRegions::check_closed_regions(StepContext& ctx) {
  const auto* edits = ctx.await<Result<bool>>(
      [&](auto done) { ports_->files.has_recovered_edits(parents_, std::move(done)); });
  if (edits == nullptr) return wait();
  if (!edits->ok()) return retry(edits->status());
  ServerName server;
  std::uint64_t sequence = 0;
  for (const RegionInfo& parent : parents_) {
    const auto* read = ctx.await<Result<std::optional<RegionRow>>>(
        [&](auto done) { ports_->catalogue.read_region(parent.id, std::move(done)); });
    if (read == nullptr) return wait();
    if (!read->ok()) return retry(read->status());
    const std::optional<RegionRow>& row = read->value();
    if (!row) return fail({StatusCode::kNotFound, to_string(parent) + " has left the catalogue"});
    if (row->state != RegionState::kClosed) return next(Step::kCloseRegions);
    if (server.empty()) server = row->server;
    sequence = std::max(sequence, row->open_sequence);
  }
  if (edits->value()) {
    return fail(
        {StatusCode::kFailedPrecondition, to_string(parents_.front()) +
                                              " or a neighbour to be merged has edits of a crashed "
                                              "server that were not replayed; merge them when they "
                                              "are open again"});
  }
  server_ = server;
  sequence_ = sequence;
  return next(Step::kCreateMergedRegion);
}

MergeTableRegions::Flow MergeTableRegions::create_merged_region(StepContext& ctx) {
  const auto* made = ctx.await<Status>([&](auto done) {
    ports_->files.make_references(parents_, {merged()}, ctx.effect_key() + "/references",
                                  std::move(done));
  });
  if (made == nullptr) return wait();
  if (!made->ok()) return retry(*made);
  return next(Step::kWriteMaxSequenceIdFile);
}

MergeTableRegions::Flow MergeTableRegions::write_max_sequence_id_file(StepContext& ctx) {
  const auto* carried = ctx.await<Status>([&](auto done) {
    ports_->files.carry_sequences(parents_, {merged()}, ctx.effect_key() + "/sequences",
                                  std::move(done));
  });
  if (carried == nullptr) return wait();
  if (!carried->ok()) return retry(*carried);
  return next(Step::kUpdateMeta);
}

MergeTableRegions::Flow MergeTableRegions::update_meta(StepContext& ctx) {
  const auto* written = ctx.await<Result<Applied>>([&](auto done) {
    CatalogueWrite write{.effect_key = ctx.effect_key() + "/merged"};
    for (const RegionInfo& parent : parents_) {
      write.regions.push_back({parent, RegionState::kSplit, server_, 0});
    }
    write.regions.push_back({merged(), RegionState::kClosed, server_, sequence_});
    ports_->catalogue.write(std::move(write), std::move(done));
  });
  if (written == nullptr) return wait();
  if (!written->ok()) return retry(written->status());
  return next(Step::kOpenMergedRegion);
}

MergeTableRegions::Flow MergeTableRegions::open_merged_region(StepContext& ctx) {
  ctx.spawn(TransitRegionState::assign(*ports_, merged(), {.retain = true}));
  return next(Step::kPostOperation);
}

MergeTableRegions::Flow MergeTableRegions::post_operation(StepContext& ctx) {
  const auto* row = ctx.await<Result<std::optional<RegionRow>>>(
      [&](auto done) { ports_->catalogue.read_region(merged().id, std::move(done)); });
  if (row == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  // ABNORMALLY_CLOSED: its server has crashed since, and ServerCrash opens it.
  const bool is_taken_care_of = row->value() && row->value()->state != RegionState::kClosed &&
                                row->value()->state != RegionState::kFailedOpen;
  if (!is_taken_care_of) return next(Step::kOpenMergedRegion);
  return done(merged().id);
}

MergeTableRegions::Flow MergeTableRegions::reopen_parents(StepContext& ctx) {
  const auto answer = RegionReopening(*ports_, ctx, reopening_).reopen(parents_);
  switch (answer.kind) {
    case RegionReopening::Kind::kOpen:
      return undone();
    case RegionReopening::Kind::kWait:
      return wait();
    case RegionReopening::Kind::kRetry:
      return retry(answer.why);
    case RegionReopening::Kind::kNewRound:
      break;
  }
  return wait_for(Duration::zero());
}

MergeTableRegions::Flow MergeTableRegions::remove_merged(StepContext& ctx) {
  const auto* removed = ctx.await<Status>([&](auto done) {
    ports_->files.remove_regions({merged()}, ctx.effect_key() + "/remove", std::move(done));
  });
  if (removed == nullptr) return wait();
  if (!removed->ok()) return retry(*removed);
  return undone();
}

}  // namespace pv2
