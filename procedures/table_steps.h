// SPDX-License-Identifier: Apache-2.0
//
// What the steps of several table procedures have in common: the questions that they ask the
// ports, the rows that they write, and the checks of a table's row. Each question returns nullptr
// while its answer is on the way: then the step answers wait().

#pragma once

#include <pv2/engine/step_context.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/procedures/cluster_ports.h"

namespace pv2::internal {

const Result<std::optional<NamespaceRow>>* read_namespace(StepContext& ctx, ClusterPorts& ports,
                                                          const std::string& name);
const Result<std::vector<TableName>>* tables_of(StepContext& ctx, ClusterPorts& ports,
                                                const std::string& name_space);
const Result<std::optional<TableRow>>* read_table(StepContext& ctx, ClusterPorts& ports,
                                                  const TableName& table);
const Result<std::vector<RegionRow>>* read_regions(StepContext& ctx, ClusterPorts& ports,
                                                   const TableName& table);
/// `what` is added to the effect key of the step; `write` has no key yet.
const Result<Applied>* write(StepContext& ctx, ClusterPorts& ports, std::string_view what,
                             CatalogueWrite write);
/// Removes every region row that the table has, except those of `kept`, in writes of bounded size.
/// nullopt while one is on the way. Running it again removes what is left.
std::optional<Status> remove_region_rows(StepContext& ctx, ClusterPorts& ports,
                                         const TableName& table,
                                         const std::vector<RegionInfo>& kept = {});
const Status* refresh_cache(StepContext& ctx, ClusterPorts& ports, const TableName& table);

/// Writes that change one thing.
[[nodiscard]] CatalogueWrite set_table(const TableDescriptor& descriptor, TableState state);
[[nodiscard]] CatalogueWrite add_closed(const std::vector<RegionInfo>& regions);
/// kInvalidArgument: the catalogue cannot take add_closed(regions) in one write.
[[nodiscard]] Status check_regions(const std::vector<RegionInfo>& regions);

/// How many regions one step starts children for; the step comes again for the rest, or each part
/// has a procedure that does. 4096, and 2 MiB of keys: with locks and records a child takes up to a
/// kilobyte, so the record of the step is well below what a store takes at once. A plain value.
class SpawnRound {
 public:
  /// Whether one more has room. The first one always has.
  [[nodiscard]] bool takes(const RegionInfo& region) {
    bytes_ += region.start_key.size() + region.end_key.size() + to_string(region.table).size();
    return ++count_ == 1 || (count_ <= kRegionsMax && bytes_ <= kBytesMax);
  }

 private:
  static constexpr std::size_t kRegionsMax = 4096;
  static constexpr std::size_t kBytesMax = std::size_t{2} << 20;
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

/// kNotFound: there is no such table.
[[nodiscard]] Status check_exists(const TableName& table, const std::optional<TableRow>& row);
/// check_exists(), and kFailedPrecondition: the table is in another state.
[[nodiscard]] Status check_is(const TableName& table, const std::optional<TableRow>& row,
                              TableState wanted);
/// kFailedPrecondition: the table holds the catalogue. `verb` is for the message: "disabled".
[[nodiscard]] Status check_not_meta(const TableName& table, std::string_view verb);

}  // namespace pv2::internal
