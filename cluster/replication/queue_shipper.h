// SPDX-License-Identifier: Apache-2.0
//
// QueueShipper: ships one queue to the peer: the logs of one server from the recorded position on.
//
//     read the peer's id -> read the position and a part of the logs -> send its edits
//           ^                                                               |
//           |__________ record the position <- all acknowledged <___________|
//
// Invariants:
// - The recorded position is before every entry that was not acknowledged by the other cluster. So
//   whoever goes on from it, here or after a claim, leaves nothing out; what it sends again has no
//   effect there.
// - A claim may bring a smaller position of this very queue. The shipper goes back there at its
//   next read, or at its next record, which does not replace the smaller one.
// - A cluster ships nothing to itself: its edits would come back over newer writes. The ids of the
//   two clusters are read for each part; a server refuses edits that have come through its cluster,
//   in case the peer's directory becomes the cluster's own after that.
// - Nothing begins while the peer is disabled, nor after stop(). when_current() tells when the last
//   thing has ended that was begun before a change of the peer, or before stop(). It does not wait
//   for the peer's id, whose directory may be on a file system that hangs: what follows that read
//   goes by the peer as it is then.
// - Nothing is given to the network when the server was fenced, or when its lease is over: a server
//   that was stopped and is taken for dead is not waited for by a change of a peer. What the client
//   of the other cluster was given before may go out still.
// - When the position is not there any more, because the queue was claimed, the queue is given up.
//
// How it fails: whatever goes wrong is a problem() for people, and is tried again after a pause
// that doubles. Nothing is shipped while the position cannot be read. A table that the other
// cluster does not have stops the queue until somebody makes it, or takes it out of the peer's
// configuration.

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
#include "storage/server_log.h"
#include "storage/work_queue.h"
#include "wire/loop_tasks.h"

namespace pv2::cluster {

/// What a shipper works with; all of it outlives it, and the work that it has put into the queues.
struct ShipperGround {
  LoopTasks& tasks;
  WorkQueue& work;
  WorkQueue& peer_reads;  ///< For what is read in the peer's directory, which may hang.
  const FileTree& files;
  const ClusterLayout& layout;
  const ServerName& server;  ///< Who ships.
  const ServerLog& log;      ///< Its own, which says whether it was fenced.
  std::function<Status()> check_lease;
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
    Result<std::optional<LogPosition>> stored{std::optional<LogPosition>()};
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
    std::optional<LogPosition> recorded;
    std::optional<LogPosition> durable_end;
    std::string peer_root;
    std::optional<Result<std::string>> peer_cluster;  ///< Its id. None: it was not read.
    std::vector<TableName> tables;
    bool is_enabled = false;
  };

  void begin();
  void read_peer_id();
  /// `peer_cluster`: its id. None: it was not read, because the peer is disabled.
  void read(std::optional<Result<std::string>> peer_cluster);
  static void read_now(const ShipperGround& ground, Question question, Found& found);
  static void read_part(const ShipperGround& ground, const Question& question, Found& found);
  void take(const FoundPointer& found);
  void check_fence(const FoundPointer& found);
  void send(const FoundPointer& found, const Status& fence);
  void take_answer(const FoundPointer& found, const Status& status);
  void record(const FoundPointer& found);
  void take_record(const FoundPointer& found, const Result<std::optional<LogPosition>>& stored);
  void give_up();
  /// If the stored position is before the one that was seen last.
  void go_back(LogPosition stored);
  void go_on(const FoundPointer& found);
  void rest(const Status& problem);
  /// The peer changes, or the shipper stops: what is under way was begun before.
  void outdate();
  void become_current();
  void become_idle();
  /// For people.
  [[nodiscard]] std::string problem() const;
  [[nodiscard]] bool is_of_dead() const { return durable_end_ == nullptr; }
  [[nodiscard]] bool is_at_end() const;
  [[nodiscard]] std::uint64_t bytes_behind() const;

  const ShipperGround ground_;
  StoredQueue queue_;  ///< Its position: what the next read begins with.
  const DurableEnd durable_end_;
  const Ended ended_;
  const std::shared_ptr<BatchSender> sender_;
  std::string peer_root_;
  std::vector<TableName> tables_;
  std::optional<LogPosition> recorded_;  ///< As last seen. None: it could not be read yet.
  bool is_enabled_ = false;
  bool is_stopped_ = false;
  bool is_busy_ = false;
  bool is_outdated_ = false;  ///< It is busy with what was begun before the last change.
  std::optional<SteadyTime> reads_id_since_;    ///< It is busy with nothing but that read.
  std::vector<std::function<void()>> waiting_;  ///< Those of when_current().
  SteadyTime not_before_{};                     ///< The end of a pause.
  Duration pause_{};
  std::uint64_t behind_ = 0;
  std::uint64_t shipped_ = 0;
  Status problem_;
};

}  // namespace pv2::cluster
