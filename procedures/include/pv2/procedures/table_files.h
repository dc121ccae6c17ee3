// SPDX-License-Identifier: Apache-2.0
//
// TableFiles: the port to the table directories: one folder per namespace, in it one per table with
// its descriptor, in it one per region with its data. Each operation takes many steps on the disk,
// and a crash may leave any part of it done; the same call again completes it. The caller holds the
// lock of what it changes.
//
// How it fails: kUnavailable or kIoError may pass. A half-written directory is not damage.

#pragma once

#include <pv2/base/status.h>
#include <pv2/engine/completion.h>

#include <optional>
#include <string>
#include <vector>

#include "pv2/procedures/region.h"
#include "pv2/procedures/table.h"

namespace pv2 {

/// Thread-safe. Every call returns at once; its completion is called once, from any thread. What an
/// OK says is durable. `effect_key` names the effect, for those who watch.
class TableFiles {
 public:
  virtual ~TableFiles() = default;

  virtual void make_namespace(std::string name, std::string effect_key,
                              Completion<Status> done) = 0;
  /// A namespace that is not there is no failure. kFailedPrecondition: a table's directory is in
  /// it.
  virtual void remove_namespace(std::string name, std::string effect_key,
                                Completion<Status> done) = 0;

  /// Makes the directory of the table hold exactly this: what is missing is made, what is right is
  /// left alone, what does not belong there is removed.
  virtual void write_layout(TableDescriptor descriptor, std::vector<RegionInfo> regions,
                            std::string effect_key, Completion<Status> done) = 0;
  /// nullopt: there is no directory of this table, or no descriptor in it.
  virtual void read_descriptor(TableName table,
                               Completion<Result<std::optional<TableDescriptor>>> done) = 0;
  /// Writes a new version of the descriptor. Regions use it from their next opening on; cells of a
  /// family that it does not name are gone then.
  virtual void write_descriptor(TableDescriptor descriptor, std::string effect_key,
                                Completion<Status> done) = 0;
  /// Moves the data of all regions of the table to the archive, and removes its directory. Nothing
  /// there: OK.
  virtual void archive_table(TableName table, std::string effect_key, Completion<Status> done) = 0;
  /// Whether the table's directory holds data that was written through a region: then it must not
  /// be laid out again.
  virtual void holds_data(TableName table, Completion<Result<bool>> done) = 0;

  /// Makes the directories of `children`, which divide (a split) or unite (a merge) the key space
  /// of the `parents`, with references to the parents' data. The parents are closed.
  virtual void make_references(std::vector<RegionInfo> parents, std::vector<RegionInfo> children,
                               std::string effect_key, Completion<Status> done) = 0;
  /// Writes into the directories of `children` the highest sequence that any of the `parents` has
  /// used.
  virtual void carry_sequences(std::vector<RegionInfo> parents, std::vector<RegionInfo> children,
                               std::string effect_key, Completion<Status> done) = 0;
  /// Removes directories of regions that were never opened.
  virtual void remove_regions(std::vector<RegionInfo> regions, std::string effect_key,
                              Completion<Status> done) = 0;
  /// Whether a region has edits from a dead server that no opening has replayed yet.
  virtual void has_recovered_edits(std::vector<RegionInfo> regions,
                                   Completion<Result<bool>> done) = 0;
};

}  // namespace pv2
