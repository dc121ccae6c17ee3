// SPDX-License-Identifier: Apache-2.0
//
// The questions, rows and checks that table procedures share. Nothing here decides what a step does
// next.

#include "table_steps.h"

#include <algorithm>
#include <set>
#include <utility>

#include "pv2/procedures/catalogue_limits.h"

namespace pv2::internal {
namespace {

// No key that write() below makes is longer.
constexpr std::size_t kEffectKeyBytes = 64;

// How many rows one write removes. A table grows by splits without a limit, and one write has at
// most kRowsPerWriteMax rows. 1024: with the names of regions about 100 kB, and the server looks at
// all cells of a row that it deletes, so each may have been written 64 times.
constexpr std::size_t kRemovalsPerWrite = 1024;

}  // namespace

const Result<std::optional<NamespaceRow>>* read_namespace(StepContext& ctx, ClusterPorts& ports,
                                                          const std::string& name) {
  return ctx.await<Result<std::optional<NamespaceRow>>>(
      [&](auto done) { ports.catalogue.read_namespace(name, std::move(done)); });
}

const Result<std::vector<TableName>>* tables_of(StepContext& ctx, ClusterPorts& ports,
                                                const std::string& name_space) {
  return ctx.await<Result<std::vector<TableName>>>(
      [&](auto done) { ports.catalogue.tables_of(name_space, std::move(done)); });
}

const Result<std::optional<TableRow>>* read_table(StepContext& ctx, ClusterPorts& ports,
                                                  const TableName& table) {
  return ctx.await<Result<std::optional<TableRow>>>(
      [&](auto done) { ports.catalogue.read_table(table, std::move(done)); });
}

const Result<std::vector<RegionRow>>* read_regions(StepContext& ctx, ClusterPorts& ports,
                                                   const TableName& table) {
  return ctx.await<Result<std::vector<RegionRow>>>(
      [&](auto done) { ports.catalogue.regions_of(table, std::move(done)); });
}

const Result<Applied>* write(StepContext& ctx, ClusterPorts& ports, std::string_view what,
                             CatalogueWrite write) {
  return ctx.await<Result<Applied>>([&](auto done) {
    write.effect_key = ctx.effect_key() + '/' + std::string(what);
    ports.catalogue.write(std::move(write), std::move(done));
  });
}

std::optional<Status> remove_region_rows(StepContext& ctx, ClusterPorts& ports,
                                         const TableName& table,
                                         const std::vector<RegionInfo>& kept) {
  const auto* rows = read_regions(ctx, ports, table);
  if (rows == nullptr) return std::nullopt;
  if (!rows->ok()) return rows->status();
  std::set<std::string_view> kept_ids;
  for (const RegionInfo& region : kept) kept_ids.insert(region.id);
  std::vector<const std::string*> left;
  for (const RegionRow& row : rows->value()) {
    if (!kept_ids.contains(row.region.id)) left.push_back(&row.region.id);
  }
  for (std::size_t first = 0; first < left.size(); first += kRemovalsPerWrite) {
    const auto* removed = ctx.await<Result<Applied>>([&](auto done) {
      // By its first region and not by a number: a step that runs again finds fewer rows.
      CatalogueWrite removal{.effect_key = ctx.effect_key() + "/removed_regions/" + *left[first]};
      const std::size_t end = std::min(left.size(), first + kRemovalsPerWrite);
      for (std::size_t at = first; at < end; ++at) removal.removed_regions.push_back(*left[at]);
      ports.catalogue.write(std::move(removal), std::move(done));
    });
    if (removed == nullptr) return std::nullopt;
    if (!removed->ok()) return removed->status();
  }
  return Status();
}

const Status* refresh_cache(StepContext& ctx, ClusterPorts& ports, const TableName& table) {
  return ctx.await<Status>([&](auto done) { ports.descriptors.refresh(table, std::move(done)); });
}

CatalogueWrite set_table(const TableDescriptor& descriptor, TableState state) {
  CatalogueWrite write;
  write.tables = {{descriptor, state}};
  return write;
}

CatalogueWrite add_closed(const std::vector<RegionInfo>& regions) {
  CatalogueWrite write;
  write.regions.reserve(regions.size());
  for (const RegionInfo& region : regions) {
    write.regions.push_back({region, RegionState::kClosed, {}, 0});
  }
  return write;
}

Status check_regions(const std::vector<RegionInfo>& regions) {
  CatalogueWrite write = add_closed(regions);
  write.effect_key.assign(kEffectKeyBytes, 'k');
  Status bad = check_size(write);
  if (bad.ok() || regions.empty()) return bad;
  return bad.with_context("table " + to_string(regions.front().table) + " would have " +
                          std::to_string(regions.size()) +
                          " regions; give fewer or shorter split keys");
}

Status check_exists(const TableName& table, const std::optional<TableRow>& row) {
  if (row) return {};
  return {StatusCode::kNotFound,
          "table " + to_string(table) + " does not exist; list the tables to find its name"};
}

Status check_is(const TableName& table, const std::optional<TableRow>& row, TableState wanted) {
  if (Status bad = check_exists(table, row); !bad.ok()) return bad;
  if (row->state == wanted) return {};
  return {StatusCode::kFailedPrecondition,
          "table " + to_string(table) + " is " + std::string(to_string(row->state)) + ", not " +
              std::string(to_string(wanted)) +
              (wanted == TableState::kDisabled ? "; disable it first" : "; enable it first")};
}

Status check_not_meta(const TableName& table, std::string_view verb) {
  if (!is_meta(table)) return {};
  return {StatusCode::kFailedPrecondition,
          "table " + to_string(table) + " holds the catalogue and cannot be " + std::string(verb)};
}

}  // namespace pv2::internal
