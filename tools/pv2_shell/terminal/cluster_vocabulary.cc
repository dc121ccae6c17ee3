// SPDX-License-Identifier: Apache-2.0
//
// One kind of argument, one question.

#include "terminal/cluster_vocabulary.h"

#include <pv2/procedures/table.h>

#include <chrono>

namespace pv2::shell {
namespace {

// A person waits for the key's effect.
constexpr Duration kPatience = std::chrono::seconds(2);
// More regions than that are no choice.
constexpr std::size_t kRegionChoicesMax = 1000;

std::string short_name(const TableName& name) {
  return name.name_space == kDefaultNamespace ? name.table : to_string(name);
}

}  // namespace

std::vector<std::string> ClusterVocabulary::tables() {
  const auto rows = shell_.ask<std::vector<TableRow>>(
      [&](auto done) { shell_.client().tables(std::move(done), kPatience); }, kPatience);
  std::vector<std::string> names;
  if (!rows.ok()) return names;
  for (const TableRow& row : *rows) names.push_back(short_name(row.descriptor.name));
  return names;
}

std::vector<std::string> ClusterVocabulary::regions() {
  std::vector<std::string> names;
  for (const std::string& table : tables()) {
    const auto rows = shell_.ask<std::vector<RegionRow>>(
        [&](auto done) { shell_.client().regions_of(parse_table_name(table), std::move(done)); },
        kPatience);
    if (!rows.ok() || names.size() > kRegionChoicesMax) break;
    for (const RegionRow& row : *rows) names.push_back(row.region.id);
  }
  return names;
}

std::vector<std::string> ClusterVocabulary::names(Takes takes) {
  std::vector<std::string> names;
  switch (takes) {
    case Takes::kTable:
      return tables();
    case Takes::kRegion:
      return regions();
    case Takes::kTableOrRegion: {
      names = tables();
      const std::vector<std::string> more = regions();
      names.insert(names.end(), more.begin(), more.end());
      return names;
    }
    case Takes::kNamespace: {
      const auto rows = shell_.ask<std::vector<NamespaceRow>>(
          [&](auto done) { shell_.client().namespaces(std::move(done), kPatience); }, kPatience);
      if (!rows.ok()) return names;
      for (const NamespaceRow& row : *rows) names.push_back(row.name);
      return names;
    }
    case Takes::kServer: {
      const auto list = shell_.ask<cluster::ServerList>(
          [&](auto done) { shell_.client().servers(std::move(done)); }, kPatience);
      if (!list.ok()) return names;
      for (const cluster::ServerEntry& entry : list->live) names.push_back(entry.name.host);
      return names;
    }
    case Takes::kProcedure: {
      const auto page = shell_.ask<ProcedurePage>(
          [&](auto done) {
            return shell_.executor().list({.is_root = true}, {}, 100, std::move(done));
          },
          kPatience);
      if (!page.ok()) return names;
      for (const ProcedureInfo& info : page->procedures) {
        names.push_back(std::to_string(info.id.value));
      }
      return names;
    }
    case Takes::kCommand:
      for (const Command& command : commands()) names.emplace_back(command.name);
      return names;
    case Takes::kRow:
    case Takes::kColumn:
    case Takes::kFamily:
    case Takes::kBytes:
    case Takes::kNumber:
    case Takes::kPeer:
      return names;
  }
  return names;
}

}  // namespace pv2::shell
