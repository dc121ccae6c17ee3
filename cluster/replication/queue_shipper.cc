// SPDX-License-Identifier: Apache-2.0
//
// The peer's directory is read on a queue of its own; the logs are read, and positions recorded, on
// the work queue; everything else is on the loop.

#include "replication/queue_shipper.h"

#include <algorithm>
#include <chrono>

#include "storage/peer_silence.h"

namespace pv2::cluster {
namespace {

// Another cluster that is down is asked again within seconds of its return.
constexpr Duration kPauseMin = std::chrono::milliseconds(100);
constexpr Duration kPauseMax = std::chrono::seconds(10);
// How often a queue that may not ship looks how far behind it is.
constexpr Duration kMeasureEvery = std::chrono::seconds(5);

Result<std::string> read_id(const FileTree& files, const std::string& root) {
  Result<std::string> id = files.read(ClusterLayout(root).cluster_id());
  if (id.status().code() == StatusCode::kNotFound) {
    return Status(StatusCode::kUnavailable, "the cluster in " + root + " has no master yet");
  }
  return id;
}

}  // namespace

QueueShipper::QueueShipper(ShipperGround ground, StoredQueue queue, ClusterClient& client,
                           DurableEnd durable_end, Ended ended)
    : ground_(ground),
      queue_(std::move(queue)),
      durable_end_(std::move(durable_end)),
      ended_(std::move(ended)),
      sender_(std::make_shared<BatchSender>(ground_.tasks, client, ground_.check_lease)),
      pause_(kPauseMin),
      problem_(queue_.problem) {
  if (problem_.ok()) recorded_ = queue_.position;
}

void QueueShipper::configure(const PeerRow& peer) {
  outdate();  // it was begun as the peer was before
  is_enabled_ = peer.enabled;
  tables_ = peer.config.tables;
  peer_root_ = peer.config.cluster;
  // Perhaps what stood in the way has been changed.
  not_before_ = SteadyTime{};
  look();
}

void QueueShipper::stop() {
  is_stopped_ = true;
  outdate();
  sender_->stop();
}

void QueueShipper::when_current(std::function<void()> current) {
  if (!is_outdated_) return current();
  waiting_.push_back(std::move(current));
}

// A read of the peer's id does not count: what follows it goes by the peer as it is then.
void QueueShipper::outdate() { is_outdated_ = is_busy_ && !reads_id_since_; }

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
          .problem = problem()};
}

std::string QueueShipper::problem() const {
  if (reads_id_since_ && ground_.tasks.now() - *reads_id_since_ >= kPeerAnswerMax) {
    return silence_of_peer(peer_root_, "remove the peer; until then nothing is shipped");
  }
  return problem_.ok() ? "" : problem_.to_string();
}

void QueueShipper::look() {
  if (is_stopped_ || is_busy_ || is_at_end() || ground_.tasks.now() < not_before_) return;
  is_busy_ = true;
  begin();
}

void QueueShipper::begin() {
  become_current();
  if (is_enabled_) return read_peer_id();
  read(std::nullopt);
}

void QueueShipper::read_peer_id() {
  reads_id_since_ = ground_.tasks.now();
  // Read for each part: the directory may be a link that now leads elsewhere.
  ground_.peer_reads.run([self = shared_from_this(), &files = ground_.files, root = peer_root_,
                          post = ground_.tasks.poster()] {
    post([self, id = read_id(files, root)] {
      self->reads_id_since_.reset();
      if (self->is_stopped_) return self->become_idle();
      self->read(id);
    });
  });
}

void QueueShipper::read(std::optional<Result<std::string>> peer_cluster) {
  const auto found = std::make_shared<Found>();
  const Question question{
      .queue = queue_,
      .recorded = recorded_,
      .durable_end = is_of_dead() ? std::nullopt : std::optional(durable_end_()),
      .peer_root = peer_root_,
      .peer_cluster = std::move(peer_cluster),
      .tables = tables_,
      .is_enabled = is_enabled_,
  };
  ground_.work.run([self = shared_from_this(), found, question, ground = ground_,
                    post = ground_.tasks.poster()] {
    read_now(ground, question, *found);
    post([self, found] { self->take(found); });
  });
}

void QueueShipper::read_now(const ShipperGround& ground, Question question, Found& found) {
  StoredQueue& queue = question.queue;
  found.stored =
      QueueFiles(ground.files, ground.layout).position(queue.peer, ground.server, queue.owner);
  if (!found.stored.ok()) return;
  const std::optional<LogPosition>& stored = *found.stored;
  if (stored && (!question.recorded || *stored < *question.recorded)) queue.position = *stored;
  const LogReader reader(ground.files, ground.layout, queue.owner);
  const auto behind = reader.bytes_behind(queue.position, question.durable_end);
  if (behind.ok()) found.behind = *behind;
  if (question.is_enabled) read_part(ground, question, found);
}

void QueueShipper::read_part(const ShipperGround& ground, const Question& question, Found& found) {
  const StoredQueue& queue = question.queue;
  const Result<std::string> own = read_id(ground.files, ground.layout.root());
  const Result<std::string>& other = question.peer_cluster.value();  // the peer is enabled
  found.status = own.ok() ? other.status() : own.status();
  if (!found.status.ok()) return;
  found.filter = {question.tables, *own, *other};
  if (found.filter.own_cluster == found.filter.peer_cluster) {
    found.status = {StatusCode::kFailedPrecondition,
                    "peer " + queue.peer + " in " + question.peer_root +
                        " is this cluster itself; nothing is shipped there; remove the peer"};
    return;
  }
  const LogReader reader(ground.files, ground.layout, queue.owner);
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
  if (!found->stored.ok()) return rest(found->stored.status());
  if (!*found->stored) return give_up();
  go_back(**found->stored);
  behind_ = found->behind;
  if (!is_enabled_) {
    not_before_ = ground_.tasks.now() + kMeasureEvery;
    return become_idle();
  }
  if (!found->status.ok()) return rest(found->status);
  if (found->filter.peer_cluster.empty()) return become_idle();  // it was disabled at the read
  if (found->groups.empty()) return take_answer(found, Status());
  check_fence(found);
}

void QueueShipper::check_fence(const FoundPointer& found) {
  ground_.work.run(
      [self = shared_from_this(), found, &log = ground_.log, post = ground_.tasks.poster()] {
        post([self, found, fence = log.check_fence()] { self->send(found, fence); });
      });
}

void QueueShipper::send(const FoundPointer& found, const Status& fence) {
  if (is_stopped_) return become_idle();
  if (!fence.ok()) return rest(fence);
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
  if (found->edits > 0 || is_over || found->next.log != recorded_->log) return record(found);
  queue_.position = found->next;
  go_on(found);
}

void QueueShipper::record(const FoundPointer& found) {
  const bool is_over = found->is_end && is_of_dead();
  const QueueProgress progress{*recorded_, found->next};
  ground_.work.run([self = shared_from_this(), found, is_over, ground = ground_, queue = queue_,
                    progress, post = ground_.tasks.poster()] {
    const QueueFiles queues(ground.files, ground.layout);
    Result<std::optional<LogPosition>> stored{std::optional<LogPosition>()};
    if (is_over) {
      stored = queues.finish(queue.peer, ground.server, queue.owner, progress.from);
    } else {
      const auto recorded = queues.record(queue.peer, ground.server, queue.owner, progress);
      stored = recorded.ok() ? Result(std::optional(*recorded)) : recorded.status();
    }
    post([self, found, stored] { self->take_record(found, stored); });
  });
}

void QueueShipper::take_record(const FoundPointer& found,
                               const Result<std::optional<LogPosition>>& stored) {
  if (is_stopped_) return become_idle();
  const bool is_finished = stored.ok() && !*stored;
  if (is_finished || stored.status().code() == StatusCode::kNotFound) return give_up();
  if (!stored.ok()) return rest(stored.status());
  if (**stored < *recorded_) {
    go_back(**stored);
    found->is_end = false;
  } else {
    queue_.position = recorded_.emplace(**stored);
  }
  go_on(found);
}

void QueueShipper::give_up() {
  stop();
  become_idle();
  ended_(queue_.owner);
}

void QueueShipper::go_back(LogPosition stored) {
  if (recorded_ && stored >= *recorded_) return;
  queue_.position = recorded_.emplace(stored);
  problem_ = Status();
}

void QueueShipper::go_on(const FoundPointer& found) {
  problem_ = Status();
  pause_ = kPauseMin;
  if (is_enabled_ && !found->is_end) return begin();
  become_idle();
}

void QueueShipper::rest(const Status& problem) {
  problem_ = problem;
  not_before_ = ground_.tasks.now() + pause_;
  pause_ = std::min(2 * pause_, kPauseMax);
  become_idle();
}

}  // namespace pv2::cluster
