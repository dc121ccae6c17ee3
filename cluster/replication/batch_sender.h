// SPDX-License-Identifier: Apache-2.0
//
// BatchSender: writes edits into the other cluster, as a client of it. A batch has one outcome: all
// of it was acknowledged, or perhaps not; then all of it may be sent again, because an edit that
// has been there has no effect (storage/version_cell.h).

#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pv2/cluster/cluster_client.h"
#include "replication/edit_batch.h"
#include "wire/loop_tasks.h"

namespace pv2::cluster {

/// Used on the loop only. `client` and `tasks` outlive it, and it outlives its callbacks: what
/// comes after its end is dropped by `tasks`.
class BatchSender : public std::enable_shared_from_this<BatchSender> {
 public:
  /// Called once, on the loop. Not OK: the first failure, which names the table.
  using Done = std::function<void(Status)>;

  /// Whether a write may go out. Otherwise the batch fails.
  using Check = std::function<Status()>;

  BatchSender(LoopTasks& tasks, ClusterClient& client, Check check)
      : tasks_(tasks), client_(client), check_(std::move(check)) {}

  /// One batch at a time.
  void send(std::vector<EditGroup> groups, Done done);
  /// Sends nothing more of a batch. What is under way ends first, then its outcome is a failure.
  void stop();
  /// Calls nobody any more.
  void end() { done_ = nullptr; }

 private:
  struct Write {
    TableName table;
    std::vector<std::string> origins;
    std::vector<Mutation> mutations;
  };

  void plan();
  void add_writes(EditGroup group, const std::vector<std::string>& starts);
  void go_on();
  void fail(const TableName& table, const Status& why);

  LoopTasks& tasks_;
  ClusterClient& client_;
  const Check check_;
  std::map<TableName, std::vector<std::string>> starts_;  ///< Of the regions, as last seen.
  std::deque<EditGroup> groups_;                          ///< Not planned yet.
  std::deque<Write> writes_;                              ///< Not sent yet.
  std::size_t in_flight_ = 0;
  Status failure_;
  Done done_;
};

}  // namespace pv2::cluster
