// SPDX-License-Identifier: Apache-2.0
//
// TableFilesPort: the port TableFiles over the real directories. Each call runs on a queue for work
// with files, one after the other.

#pragma once

#include <pv2/procedures/table_files.h>

#include "master/probe.h"
#include "storage/table_directories.h"
#include "storage/work_queue.h"

namespace pv2::cluster {

/// Thread-safe. The references outlive it and what it has put in the queue.
class TableFilesPort final : public TableFiles {
 public:
  TableFilesPort(const TableDirectories& directories, WorkQueue& queue, const Probe& probe)
      : directories_(directories), queue_(queue), probe_(probe) {}

  void make_namespace(std::string name, std::string effect_key, Completion<Status> done) override;
  void remove_namespace(std::string name, std::string effect_key, Completion<Status> done) override;
  void write_layout(TableDescriptor descriptor, std::vector<RegionInfo> regions,
                    std::string effect_key, Completion<Status> done) override;
  void read_descriptor(TableName table,
                       Completion<Result<std::optional<TableDescriptor>>> done) override;
  void write_descriptor(TableDescriptor descriptor, std::string effect_key,
                        Completion<Status> done) override;
  void archive_table(TableName table, std::string effect_key, Completion<Status> done) override;
  void holds_data(TableName table, Completion<Result<bool>> done) override;
  void make_references(std::vector<RegionInfo> parents, std::vector<RegionInfo> children,
                       std::string effect_key, Completion<Status> done) override;
  void carry_sequences(std::vector<RegionInfo> parents, std::vector<RegionInfo> children,
                       std::string effect_key, Completion<Status> done) override;
  void remove_regions(std::vector<RegionInfo> regions, std::string effect_key,
                      Completion<Status> done) override;
  void has_recovered_edits(std::vector<RegionInfo> regions, Completion<Result<bool>> done) override;

 private:
  /// Runs `work` on the queue, and answers with what it returns.
  template <class T, class Work>
  void run(ClusterCall call, std::string effect_key, Completion<T> done, Work work);

  const TableDirectories& directories_;
  WorkQueue& queue_;
  const Probe& probe_;
};

}  // namespace pv2::cluster
