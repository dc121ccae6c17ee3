// SPDX-License-Identifier: Apache-2.0
//
// DescriptorStore: the port DescriptorCache: the descriptors of tables in memory, read from the
// table directories when they change. Volatile.

#pragma once

#include <pv2/base/mutex.h>
#include <pv2/procedures/descriptor_cache.h>

#include <functional>
#include <map>
#include <optional>

#include "storage/table_directories.h"
#include "storage/work_queue.h"
#include "wire/server_messages.h"

namespace pv2::cluster {

/// Thread-safe. `directories` and `queue` outlive it and what it has put in the queue.
class DescriptorStore final : public DescriptorCache {
 public:
  DescriptorStore(const TableDirectories& directories, WorkQueue& queue)
      : directories_(directories), queue_(queue) {}

  /// Reads all descriptors there are. For the start. `unreadable` is told of each that cannot be
  /// read: its table has no descriptor here until a refresh() finds one.
  Status load_all(const std::function<void(const Status&)>& unreadable);
  /// What the cache has, in messages that fit into a frame.
  [[nodiscard]] DescriptorList list(const std::optional<TableName>& after) const;

  void refresh(TableName table, Completion<Status> done) override;

 private:
  Status read(const TableName& table);

  const TableDirectories& directories_;
  WorkQueue& queue_;
  mutable Mutex descriptors_mutex_;
  std::map<TableName, TableDescriptor> descriptors_ PV2_GUARDED_BY(descriptors_mutex_);
};

}  // namespace pv2::cluster
