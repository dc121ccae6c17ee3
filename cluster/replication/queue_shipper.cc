// SPDX-License-Identifier: Apache-2.0
//
// The logs are read, and positions recorded, on the work queue; everything else is on the loop.

#include "replication/queue_shipper.h"

#include <algorithm>
#include <chrono>

namespace pv2::cluster {
namespace {

// Another cluster that is down is asked again within seconds of its return.
constexpr Duration kPauseMin = std::chrono::milliseconds(100);
constexpr Duration kPauseMax = std::chrono::seconds(10);
// How often a queue that may not ship looks how far behind it is.
constexpr Duration kMeasureEvery = std::chrono::seconds(5);

Status read_id(const FileTree& files, const std::string& root, std::string& id) {
  if (!id.empty()) return {};
  Result<std::string> read = files.read(ClusterLayout(root).cluster_id());
  if (read.status().code() == StatusCode::kNotFound) {
    return {StatusCode::kUnavailable, "the cluster in " + root + " has no master yet"};
  }
  if (!read.ok()) return read.status();
  id = *std::move(read);
  return {};
}

}  // namespace

QueueShipper::QueueShipper(ShipperGround ground, StoredQueue queue, ClusterClient& client,
                           DurableEnd durable_end, Ended ended)
    : ground_(ground),
      queue_(std::move(queue)),
      durable_end_(std::move(durable_end)),
      ended_(std::move(ended)),
      sender_(std::make_shared<BatchSender>(ground_.tasks, client)),
      recorded_(queue_.position),
      pause_(kPauseMin) {}

void QueueShipper::configure(const PeerRow& peer) {
  is_outdated_ = is_busy_;  // it was begun as the peer was before
  is_enabled_ = peer.enabled;
  filter_.tables = peer.config.tables;
  peer_root_ = peer.config.cluster;
  // Perhaps what stood in the way has been changed.
  not_before_ = SteadyTime{};
  look();
}

void QueueShipper::stop() {
  is_stopped_ = true;
  is_outdated_ = is_busy_;
  sender_->stop();
}

void QueueShipper::when_current(std::function<void()> current) {
  if (!is_outdated_) return current();
  waiting_.push_back(std::move(current));
}

void QueueShipper::become_current() {
  is_outdated_ = false;
  for (const auto& current : std::exchange(waiting_, {})) current();
}

void QueueShipper::become_idle() {
  is_busy_ = false;
  become_current();
}

bool QueueShipper::is_at_end() const { return !is_of_dead() && queue_.position >= durable_end_(); }

std::uint64_t QueueShipper::bytes_behind() const {
  if (is_of_dead()) return behind_;
  const LogPosition end = durable_end_();
  if (queue_.position.log == end.log) return end.offset - queue_.position.offset;
  return std::max<std::uint64_t>(behind_, end.offset);
}

QueueStatus QueueShipper::status() const {
  return {.owner = queue_.owner,
          .log = queue_.position.log,
          .offset = queue_.position.offset,
          .bytes_behind = bytes_behind(),
          .edits_shipped = shipped_,
          .problem = problem_.ok() ? "" : problem_.to_string()};
}

void QueueShipper::look() {
  if (is_stopped_ || is_busy_ || is_at_end() || ground_.tasks.now() < not_before_) return;
  is_busy_ = true;
  read();
}

void QueueShipper::read() {
  become_current();
  const auto found = std::make_shared<Found>();
  found->filter = filter_;
  Question question{queue_, std::nullopt, peer_root_, is_enabled_};
  if (!is_of_dead()) question.durable_end = durable_end_();
  ground_.work.run([self = shared_from_this(), found, question, ground = ground_,
                    post = ground_.tasks.poster()] {
    read_now(ground, question, *found);
    post([self, found] { self->take(found); });
  });
}

void QueueShipper::read_now(const ShipperGround& ground, const Question& question, Found& found) {
  const StoredQueue& queue = question.queue;
  const LogReader reader(ground.files, ground.layout, queue.owner);
  const auto behind = reader.bytes_behind(queue.position, question.durable_end);
  if (behind.ok()) found.behind = *behind;
  if (!question.is_enabled) return;
  found.status = read_id(ground.files, ground.layout.root(), found.filter.own_cluster);
  if (!found.status.ok()) return;
  found.status = read_id(ground.files, question.peer_root, found.filter.peer_cluster);
  if (!found.status.ok()) return;
  if (found.filter.own_cluster == found.filter.peer_cluster) {
    found.status = {StatusCode::kFailedPrecondition,
                    "peer " + queue.peer + " in " + question.peer_root +
                        " is this cluster itself; nothing is shipped there; remove the peer"};
    return;
  }
  const Result<LogPart> part = reader.read(queue.position, question.durable_end);
  found.status = part.status();
  if (!part.ok()) return;
  found.next = part->next;
  found.is_end = part->is_end;
  found.groups = edits_to_ship(part->entries, found.filter);
  for (const EditGroup& group : found.groups) found.edits += group.mutations.size();
}

void QueueShipper::take(const FoundPointer& found) {
  if (is_stopped_) return become_idle();
  behind_ = found->behind;
  if (!is_enabled_) {
    not_before_ = ground_.tasks.now() + kMeasureEvery;
    return become_idle();
  }
  if (!found->status.ok()) return rest(found->status);
  if (found->filter.peer_cluster.empty()) return become_idle();  // it was disabled at the read
  filter_.own_cluster = found->filter.own_cluster;
  filter_.peer_cluster = found->filter.peer_cluster;
  if (found->groups.empty()) return take_answer(found, Status());
  sender_->send(std::move(found->groups), [self = shared_from_this(), found](const Status& status) {
    self->take_answer(found, status);
  });
}

void QueueShipper::take_answer(const FoundPointer& found, const Status& status) {
  if (is_stopped_) return become_idle();
  if (!status.ok()) return rest(status);  // all of it is sent again
  shipped_ += found->edits;
  // A part without edits needs no record: whoever reads it again finds none either. But a position
  // keeps its log, and the later ones.
  const bool is_over = found->is_end && is_of_dead();
  if (found->edits > 0 || is_over || found->next.log != recorded_.log) return record(found);
  queue_.position = found->next;
  go_on(found);
}

void QueueShipper::record(const FoundPointer& found) {
  const bool is_over = found->is_end && is_of_dead();
  ground_.work.run([self = shared_from_this(), found, is_over, ground = ground_, queue = queue_,
                    post = ground_.tasks.poster()] {
    const QueueFiles queues(ground.files, ground.layout);
    const Status status = is_over
                              ? queues.remove(queue.peer, ground.server, queue.owner)
                              : queues.record(queue.peer, ground.server, queue.owner, found->next);
    post([self, found, status] { self->take_record(found, status); });
  });
}

void QueueShipper::take_record(const FoundPointer& found, const Status& status) {
  if (is_stopped_) return become_idle();
  const bool is_over = found->is_end && is_of_dead();
  if ((status.ok() && is_over) || status.code() == StatusCode::kNotFound) {
    stop();
    become_idle();
    return ended_(queue_.owner);
  }
  if (!status.ok()) return rest(status);
  queue_.position = recorded_ = found->next;
  go_on(found);
}

void QueueShipper::go_on(const FoundPointer& found) {
  problem_ = Status();
  pause_ = kPauseMin;
  if (is_enabled_ && !found->is_end) return read();
  become_idle();
}

void QueueShipper::rest(const Status& problem) {
  problem_ = problem;
  not_before_ = ground_.tasks.now() + pause_;
  pause_ = std::min(2 * pause_, kPauseMax);
  become_idle();
}

}  // namespace pv2::cluster
