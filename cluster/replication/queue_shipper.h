// SPDX-License-Identifier: Apache-2.0
//
// QueueShipper: ships one queue to the peer: the logs of one server from the recorded position on.
//
//     read a part of the logs -> send its edits -> all acknowledged -> record the position -> again
//          ^______________________________________________________________________|
//
// Invariants:
// - The recorded position is before every entry that was not acknowledged by the other cluster. So
//   whoever goes on from it, here or after a claim, leaves nothing out; what it sends again has no
//   effect there.
// - A cluster ships nothing to itself: its edits would come back over newer writes.
// - Nothing begins while the peer is disabled, nor after stop(). when_current() tells when the last
//   thing has ended that was begun before a change of the peer, or before stop().
// - When the position cannot be recorded because the queue was claimed, the queue is given up.
//
// How it fails: whatever goes wrong is a problem() for people, and is tried again after a pause
// that doubles. A table that the other cluster does not have stops the queue until somebody makes
// it, or takes it out of the peer's configuration.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/procedures/peer.h>
#include <pv2/procedures/server.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pv2/cluster/server_list.h"
#include "replication/batch_sender.h"
#include "replication/edit_batch.h"
#include "replication/log_reader.h"
#include "replication/queue_files.h"
#include "storage/work_queue.h"
#include "wire/loop_tasks.h"

namespace pv2::cluster {

/// What a shipper works with; all of it outlives it, and the work that it has put into the queue.
struct ShipperGround {
  LoopTasks& tasks;
  WorkQueue& work;
  const FileTree& files;
  const ClusterLayout& layout;
  const ServerName& server;  ///< Who ships.
};

/// Used on the loop only. Shared with what it has under way.
class QueueShipper : public std::enable_shared_from_this<QueueShipper> {
 public:
  /// The end of this server's own log; null: the owner of the queue is dead.
  using DurableEnd = std::function<LogPosition()>;
  /// The queue of a dead server is at its end, or was claimed by another server.
  using Ended = std::function<void(const ServerName& owner)>;

  QueueShipper(ShipperGround ground, StoredQueue queue, ClusterClient& client,
               DurableEnd durable_end, Ended ended);

  /// The peer as it is stored now.
  void configure(const PeerRow& peer);
  /// Looks whether there is something to do. To be called from time to time.
  void look();
  /// From now on it begins nothing, and records nothing.
  void stop();
  /// The loop is over: nobody is called any more, so what is under way does not keep it.
  void end() {
    sender_->end();
    waiting_.clear();
  }
  /// Calls `current` when nothing is under way any more that was begun before the last configure()
  /// or stop().
  void when_current(std::function<void()> current);

  [[nodiscard]] QueueStatus status() const;

 private:
  /// What the work queue has found.
  struct Found {
    Status status{};
    LogPosition next{};
    bool is_end = false;
    std::vector<EditGroup> groups{};
    std::size_t edits = 0;
    EditFilter filter{};
    std::uint64_t behind = 0;
  };
  using FoundPointer = std::shared_ptr<Found>;
  /// What it is to look for.
  struct Question {
    StoredQueue queue;
    std::optional<LogPosition> durable_end;
    std::string peer_root;
    bool is_enabled = false;
  };

  void read();
  static void read_now(const ShipperGround& ground, const Question& question, Found& found);
  void take(const FoundPointer& found);
  void take_answer(const FoundPointer& found, const Status& status);
  void record(const FoundPointer& found);
  void take_record(const FoundPointer& found, const Status& status);
  void go_on(const FoundPointer& found);
  void rest(const Status& problem);
  void become_current();
  void become_idle();
  [[nodiscard]] bool is_of_dead() const { return durable_end_ == nullptr; }
  [[nodiscard]] bool is_at_end() const;
  [[nodiscard]] std::uint64_t bytes_behind() const;

  const ShipperGround ground_;
  StoredQueue queue_;  ///< Its position: what the next read begins with.
  const DurableEnd durable_end_;
  const Ended ended_;
  const std::shared_ptr<BatchSender> sender_;
  std::string peer_root_;
  EditFilter filter_;
  LogPosition recorded_;
  bool is_enabled_ = false;
  bool is_stopped_ = false;
  bool is_busy_ = false;
  bool is_outdated_ = false;  ///< It is busy with what was begun before the last change.
  std::vector<std::function<void()>> waiting_;  ///< Those of when_current().
  SteadyTime not_before_{};                     ///< The end of a pause.
  Duration pause_{};
  std::uint64_t behind_ = 0;
  std::uint64_t shipped_ = 0;
  Status problem_;
};

}  // namespace pv2::cluster
