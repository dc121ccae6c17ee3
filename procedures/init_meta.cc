// SPDX-License-Identifier: Apache-2.0
//
// The steps of InitMeta. The row of the catalogue's region is written in the second step, so a
// first step that runs again still finds none.

#include "pv2/procedures/init_meta.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "pv2/procedures/transit_region_state.h"

namespace pv2 {
namespace {

constexpr std::array kFirstNamespaces{kDefaultNamespace, kSystemNamespace};

}  // namespace

TableDescriptor meta_descriptor() { return {meta_table(), {"info", "ns", "table"}}; }

// Not the catalogue's table: a ServerCrash has to lock that when the server of the region dies,
// while CREATE_NAMESPACES waits for the catalogue.
LockSet InitMeta::locks() const { return LockSet().meta(LockMode::kExclusive); }

InitMeta::Flow InitMeta::execute_from_state(Step step, StepContext& ctx) {
  switch (step) {
    case Step::kWriteFsLayout:
      return write_fs_layout(ctx);
    case Step::kAssignMeta:
      return assign_meta(ctx);
    case Step::kCreateNamespaces:
      return create_namespaces(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.InitMeta has no such step"});
}

InitMeta::Flow InitMeta::write_fs_layout(StepContext& ctx) {
  const auto* row = ctx.await<Result<std::optional<RegionRow>>>(
      [&](auto done) { ports_->catalogue.read_region(meta_region().id, std::move(done)); });
  const auto* data = ctx.await<Result<bool>>(
      [&](auto done) { ports_->files.holds_data(meta_table(), std::move(done)); });
  if (row == nullptr || data == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  if (!data->ok()) return retry(data->status());
  if (row->value()) {
    return fail({StatusCode::kFailedPrecondition, "the cluster has a catalogue already, last on " +
                                                      to_string(row->value()->server)});
  }
  if (data->value()) {
    return fail({StatusCode::kFailedPrecondition,
                 "the directory of table " + to_string(meta_table()) +
                     " holds data of an earlier cluster; move it away, or begin with its master "
                     "directory"});
  }
  const auto* written = ctx.await<Status>([&](auto done) {
    ports_->files.write_layout(meta_descriptor(), {meta_region()}, ctx.effect_key() + "/layout",
                               std::move(done));
  });
  if (written == nullptr) return wait();
  if (!written->ok()) return retry(*written);
  return next(Step::kAssignMeta);
}

InitMeta::Flow InitMeta::assign_meta(StepContext& ctx) {
  const auto* added = ctx.await<Result<Applied>>([&](auto done) {
    ports_->catalogue.write({.effect_key = ctx.effect_key() + "/region",
                             .regions = {{meta_region(), RegionState::kClosed, {}, 0}}},
                            std::move(done));
  });
  if (added == nullptr) return wait();
  // Refused: an earlier run has added the row, and somebody has assigned the region since.
  if (!added->ok() && added->status().code() != StatusCode::kFailedPrecondition) {
    return retry(added->status());
  }
  ctx.spawn(TransitRegionState::assign(*ports_, meta_region()));
  return next(Step::kCreateNamespaces);
}

InitMeta::Flow InitMeta::create_namespaces(StepContext& ctx) {
  for (const std::string_view name : kFirstNamespaces) {
    const auto* made = ctx.await<Status>([&](auto done) {
      ports_->files.make_namespace(std::string(name), ctx.effect_key() + "/directories",
                                   std::move(done));
    });
    if (made == nullptr) return wait();
    if (!made->ok()) return retry(*made);
  }
  const auto* added = ctx.await<Result<Applied>>([&](auto done) {
    CatalogueWrite write{.effect_key = ctx.effect_key() + "/rows"};
    for (const std::string_view name : kFirstNamespaces) {
      write.namespaces.push_back({std::string(name)});
    }
    ports_->catalogue.write(std::move(write), std::move(done));
  });
  if (added == nullptr) return wait();
  if (!added->ok()) return retry(added->status());
  return done();
}

}  // namespace pv2
