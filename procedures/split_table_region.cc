// SPDX-License-Identifier: Apache-2.0
//
// The steps of SplitTableRegion, and the undo of two of them. An undo finds out by itself how far
// its step has come: nothing that it needs is kept in memory.

#include "pv2/procedures/split_table_region.h"

#include <fmt/format.h>

#include <utility>

#include "pv2/procedures/catalogue_limits.h"
#include "pv2/procedures/transit_region_state.h"
#include "region_reopening.h"
#include "stable_hash.h"

namespace pv2 {
SplitTableRegion::SplitTableRegion(ClusterPorts& ports, RegionInfo parent, std::string split_key)
    : ports_(&ports), parent_(std::move(parent)), split_key_(std::move(split_key)) {}

std::vector<RegionInfo> SplitTableRegion::daughters() const {
  const auto id = [&](std::string_view side) {
    const std::string text = to_string(parent_.table) + '\0' + parent_.id + '\0' + split_key_;
    return fmt::format("{:016x}", internal::stable_hash(text + '\0' + std::string(side)));
  };
  return {{parent_.table, id("first"), parent_.start_key, split_key_},
          {parent_.table, id("second"), split_key_, parent_.end_key}};
}

LockSet SplitTableRegion::locks() const {
  LockSet locks;
  const TableName& table = parent_.table;
  locks.region(table.name_space, table.table, parent_.id, LockMode::kExclusive);
  for (const RegionInfo& daughter : daughters()) {
    locks.region(table.name_space, table.table, daughter.id, LockMode::kExclusive);
  }
  return locks;
}

SplitTableRegion::Flow SplitTableRegion::execute_from_state(Step step, StepContext& ctx) {
  switch (step) {
    case Step::kPrepare:
      return prepare(ctx);
    case Step::kCloseParentRegion:
      return close_parent_region(ctx);
    case Step::kCheckClosedRegions:
      return check_closed_regions(ctx);
    case Step::kCreateDaughterRegions:
      return create_daughter_regions(ctx);
    case Step::kWriteMaxSequenceIdFile:
      return write_max_sequence_id_file(ctx);
    case Step::kUpdateMeta:
      return update_meta(ctx);
    case Step::kOpenChildRegions:
      return open_child_regions(ctx);
    case Step::kPostOperation:
      return post_operation(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.SplitTableRegion has no such step"});
}

SplitTableRegion::Flow SplitTableRegion::rollback_state(Step step, StepContext& ctx) {
  switch (step) {
    case Step::kCloseParentRegion:
      return reopen_parent(ctx);
    case Step::kCreateDaughterRegions:
      return remove_daughters(ctx);
    case Step::kPrepare:
    case Step::kCheckClosedRegions:
    case Step::kWriteMaxSequenceIdFile:
    case Step::kUpdateMeta:
    case Step::kOpenChildRegions:
    case Step::kPostOperation:
      break;
  }
  return undone();
}

SplitTableRegion::Flow SplitTableRegion::prepare(StepContext& ctx) {
  const bool inside =
      split_key_ > parent_.start_key && (parent_.end_key.empty() || split_key_ < parent_.end_key);
  if (!inside) {
    return fail({StatusCode::kInvalidArgument,
                 to_string(parent_) + " cannot be split at '" + split_key_ +
                     "': choose a key after its first one and before its end"});
  }
  if (Status bad = check_row_key(to_string(parent_), split_key_); !bad.ok()) {
    return fail(std::move(bad));
  }
  if (is_meta(parent_.table)) {
    return fail({StatusCode::kFailedPrecondition, "the catalogue has one region, for ever"});
  }
  const auto* table = ctx.await<Result<std::optional<TableRow>>>(
      [&](auto done) { ports_->catalogue.read_table(parent_.table, std::move(done)); });
  const auto* row = ctx.await<Result<std::optional<RegionRow>>>(
      [&](auto done) { ports_->catalogue.read_region(parent_.id, std::move(done)); });
  if (table == nullptr || row == nullptr) return wait();
  if (!table->ok()) return retry(table->status());
  if (!row->ok()) return retry(row->status());
  if (Status bad = check_parent(table->value(), row->value()); !bad.ok()) return fail(bad);
  for (const RegionInfo& daughter : daughters()) {
    const auto* other = ctx.await<Result<std::optional<RegionRow>>>(
        [&](auto done) { ports_->catalogue.read_region(daughter.id, std::move(done)); });
    if (other == nullptr) return wait();
    if (!other->ok()) return retry(other->status());
    if (other->value()) {
      return fail({StatusCode::kAlreadyExists,
                   "there is a region " + daughter.id + " already; choose another split key"});
    }
  }
  return next(Step::kCloseParentRegion);
}

Status SplitTableRegion::check_parent(const std::optional<TableRow>& table,
                                      const std::optional<RegionRow>& row) const {
  if (!table) {
    return {StatusCode::kNotFound, "there is no table " + to_string(parent_.table)};
  }
  if (!row || row->region != parent_) {
    return {StatusCode::kNotFound, to_string(parent_) + " is not in the catalogue with these keys"};
  }
  if (table->state != TableState::kEnabled) {
    return {StatusCode::kFailedPrecondition, "table " + to_string(parent_.table) + " is " +
                                                 std::string(to_string(table->state)) +
                                                 "; only regions of an enabled table are split"};
  }
  if (row->state != RegionState::kOpen) {
    return {StatusCode::kFailedPrecondition, to_string(parent_) + " is " +
                                                 std::string(to_string(row->state)) +
                                                 "; only an open region can be split"};
  }
  return {};
}

SplitTableRegion::Flow SplitTableRegion::close_parent_region(StepContext& ctx) {
  ctx.spawn(TransitRegionState::unassign(*ports_, parent_));
  return next(Step::kCheckClosedRegions);
}

SplitTableRegion::Flow SplitTableRegion::check_closed_regions(StepContext& ctx) {
  const auto* read = ctx.await<Result<std::optional<RegionRow>>>(
      [&](auto done) { ports_->catalogue.read_region(parent_.id, std::move(done)); });
  const auto* edits = ctx.await<Result<bool>>(
      [&](auto done) { ports_->files.has_recovered_edits({parent_}, std::move(done)); });
  if (read == nullptr || edits == nullptr) return wait();
  if (!read->ok()) return retry(read->status());
  if (!edits->ok()) return retry(edits->status());
  const std::optional<RegionRow>& row = read->value();
  if (!row) return fail({StatusCode::kNotFound, to_string(parent_) + " has left the catalogue"});
  if (row->state != RegionState::kClosed) return next(Step::kCloseParentRegion);
  if (edits->value()) {
    return fail({StatusCode::kFailedPrecondition,
                 to_string(parent_) +
                     " has edits of a crashed server that were not replayed; split it "
                     "when it is open again"});
  }
  parent_server_ = row->server;
  parent_sequence_ = row->open_sequence;
  return next(Step::kCreateDaughterRegions);
}

SplitTableRegion::Flow SplitTableRegion::create_daughter_regions(StepContext& ctx) {
  const auto* made = ctx.await<Status>([&](auto done) {
    ports_->files.make_references({parent_}, daughters(), ctx.effect_key() + "/references",
                                  std::move(done));
  });
  if (made == nullptr) return wait();
  if (!made->ok()) return retry(*made);
  return next(Step::kWriteMaxSequenceIdFile);
}

SplitTableRegion::Flow SplitTableRegion::write_max_sequence_id_file(StepContext& ctx) {
  const auto* carried = ctx.await<Status>([&](auto done) {
    ports_->files.carry_sequences({parent_}, daughters(), ctx.effect_key() + "/sequences",
                                  std::move(done));
  });
  if (carried == nullptr) return wait();
  if (!carried->ok()) return retry(*carried);
  return next(Step::kUpdateMeta);
}

SplitTableRegion::Flow SplitTableRegion::update_meta(StepContext& ctx) {
  const auto* written = ctx.await<Result<Applied>>([&](auto done) {
    CatalogueWrite write{.effect_key = ctx.effect_key() + "/split"};
    write.regions.push_back({parent_, RegionState::kSplit, parent_server_, parent_sequence_});
    for (const RegionInfo& daughter : daughters()) {
      write.regions.push_back({daughter, RegionState::kClosed, parent_server_, parent_sequence_});
    }
    ports_->catalogue.write(std::move(write), std::move(done));
  });
  if (written == nullptr) return wait();
  if (!written->ok()) return retry(written->status());
  return next(Step::kOpenChildRegions);
}

SplitTableRegion::Flow SplitTableRegion::open_child_regions(StepContext& ctx) {
  std::uint32_t spread = 0;
  for (const RegionInfo& daughter : daughters()) {
    ctx.spawn(TransitRegionState::assign(*ports_, daughter, {.spread = spread++, .retain = true}));
  }
  return next(Step::kPostOperation);
}

SplitTableRegion::Flow SplitTableRegion::post_operation(StepContext& ctx) {
  std::string ids;
  for (const RegionInfo& daughter : daughters()) {
    const auto* row = ctx.await<Result<std::optional<RegionRow>>>(
        [&](auto done) { ports_->catalogue.read_region(daughter.id, std::move(done)); });
    if (row == nullptr) return wait();
    if (!row->ok()) return retry(row->status());
    // ABNORMALLY_CLOSED: its server has crashed since, and ServerCrash opens it.
    const bool is_taken_care_of = row->value() && row->value()->state != RegionState::kClosed &&
                                  row->value()->state != RegionState::kFailedOpen;
    if (!is_taken_care_of) return next(Step::kOpenChildRegions);
    ids += (ids.empty() ? "" : " ") + daughter.id;
  }
  return done(ids);
}

SplitTableRegion::Flow SplitTableRegion::reopen_parent(StepContext& ctx) {
  const auto answer = RegionReopening(*ports_, ctx, reopening_).reopen({parent_});
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

SplitTableRegion::Flow SplitTableRegion::remove_daughters(StepContext& ctx) {
  const auto* removed = ctx.await<Status>([&](auto done) {
    ports_->files.remove_regions(daughters(), ctx.effect_key() + "/remove", std::move(done));
  });
  if (removed == nullptr) return wait();
  if (!removed->ok()) return retry(*removed);
  return undone();
}

}  // namespace pv2
