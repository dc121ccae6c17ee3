// SPDX-License-Identifier: Apache-2.0
//
// Catalogue: the port to the catalogue (HBase's hbase:meta): which namespaces, tables, regions and
// servers there are, and in which state. It is durable on its own, outside the engine's store, and
// outlives any executor.
//
// How it fails: kUnavailable or kIoError may pass (the server that hosts the catalogue is dead);
// asking again with the same effect key is always safe. kFenced and kFailedPrecondition are
// decisions: nothing was changed, and nothing will be unless another row changes first.

#pragma once

#include <pv2/base/status.h>
#include <pv2/engine/completion.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pv2/procedures/region.h"
#include "pv2/procedures/server.h"
#include "pv2/procedures/table.h"

namespace pv2 {

/// Rows that are written and removed together or not at all.
///
/// The rows of servers, and the row of the catalogue's own region, are kept outside the catalogue's
/// table, so that they can be read when the catalogue cannot. A write has either only such rows, or
/// none.
struct CatalogueWrite {
  /// Names the effect. Each row remembers the key of its last write: a write that comes again under
  /// the key of a row changes nothing.
  std::string effect_key;
  std::vector<NamespaceRow> namespaces{};
  std::vector<TableRow> tables{};
  std::vector<RegionRow> regions{};
  std::vector<ServerRow> servers{};
  /// Removing what is not there changes nothing.
  std::vector<std::string> removed_namespaces{};
  std::vector<TableName> removed_tables{};
  std::vector<std::string> removed_regions{};  ///< Ids.

  void fields(auto& f) {
    f(1, "effect_key", effect_key);
    f(2, "tables", tables);
    f(3, "regions", regions);
    f(4, "servers", servers);
    f(5, "namespaces", namespaces);
    f(6, "removed_namespaces", removed_namespaces);
    f(7, "removed_tables", removed_tables);
    f(8, "removed_regions", removed_regions);
  }
};

/// Whether this call wrote, or an earlier one with the same effect key had. A procedure that writes
/// before a remote call learns from this whether the remote call may have been made before.
enum class Applied : std::uint8_t { kNow = 1, kBefore = 2 };

/// Thread-safe. Every call returns at once; its completion is called once, from any thread, perhaps
/// from within the call.
class Catalogue {
 public:
  virtual ~Catalogue() = default;

  /// nullopt: there is no such row.
  virtual void read_namespace(std::string name,
                              Completion<Result<std::optional<NamespaceRow>>> done) = 0;
  /// The tables of a namespace, in any state, in order of name.
  virtual void tables_of(std::string name_space,
                         Completion<Result<std::vector<TableName>>> done) = 0;
  virtual void read_table(TableName name, Completion<Result<std::optional<TableRow>>> done) = 0;
  /// The regions of a table, in any state, in order of start key, then of end key.
  virtual void regions_of(TableName table, Completion<Result<std::vector<RegionRow>>> done) = 0;
  virtual void read_region(std::string id, Completion<Result<std::optional<RegionRow>>> done) = 0;
  /// Every region of `ids` that is, is being opened, or was at its crash, on `server`, in order of
  /// id. CLOSED, SPLIT and FAILED_OPEN regions are nowhere.
  virtual void regions_on(ServerName server, RegionIds ids,
                          Completion<Result<std::vector<RegionRow>>> done) = 0;
  /// The row of a server; one that says kOnline when there is none.
  virtual void read_server(ServerName name, Completion<Result<ServerRow>> done) = 0;

  /// Writes rows; they are durable when the completion says so. CatalogueState has the rules.
  ///
  /// kFenced: a row puts a region on a server that is dead. kFailedPrecondition: a row may not
  /// follow the existing one, because it is of another kind, or because edits of a dead server
  /// would be missed. The message names both.
  virtual void write(CatalogueWrite write, Completion<Result<Applied>> done) = 0;
};

}  // namespace pv2
