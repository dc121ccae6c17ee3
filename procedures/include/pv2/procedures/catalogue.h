// SPDX-License-Identifier: Apache-2.0
//
// Catalogue: the port to the catalogue (HBase's hbase:meta): which tables, regions and servers
// there are, and in which state. It is durable on its own, outside the engine's store, and outlives
// any executor.
//
// How it fails: kUnavailable or kIoError may pass; asking again with the same effect key is always
// safe. kFenced and kFailedPrecondition are decisions and stay: nothing was changed.

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

/// Rows that are written together or not at all.
struct CatalogueWrite {
  /// Names the effect: the catalogue applies it once, however often it is asked.
  std::string effect_key;
  std::vector<TableRow> tables;
  std::vector<RegionRow> regions;
  std::vector<ServerRow> servers;

  void fields(auto& f) {
    f(1, "effect_key", effect_key);
    f(2, "tables", tables);
    f(3, "regions", regions);
    f(4, "servers", servers);
  }
};

/// Whether this call wrote, or an earlier one with the same effect key had. A procedure that writes
/// before a remote call learns from this whether the remote call may have been made before.
/// Persisted in the journal.
enum class Applied : std::uint8_t { kNow = 1, kBefore = 2 };

/// Thread-safe. Every call returns at once; its completion is called once, from any thread, perhaps
/// from within the call.
class Catalogue {
 public:
  virtual ~Catalogue() = default;

  /// The row of a table; nullopt when there is none.
  virtual void read_table(TableName name, Completion<Result<std::optional<TableRow>>> done) = 0;
  /// The row of the region with that id; nullopt when there is none.
  virtual void read_region(std::string id, Completion<Result<std::optional<RegionRow>>> done) = 0;
  /// Every region that is recorded on `server`, in any state.
  virtual void regions_on(ServerName server, Completion<Result<std::vector<RegionRow>>> done) = 0;
  /// The recorded state of a server; kOnline when none is recorded.
  virtual void read_server(ServerName name, Completion<Result<ServerState>> done) = 0;

  /// Writes rows; they are durable when the completion says so.
  ///
  /// kFenced: a row puts a region on a server that is crashed or retired. kFailedPrecondition: a
  /// row may not follow the existing one (the message names both).
  virtual void write(CatalogueWrite write, Completion<Result<Applied>> done) = 0;
};

}  // namespace pv2
