// SPDX-License-Identifier: Apache-2.0
//
// The network in memory: one line of ready work, served first in, first out, and a map of timers.
// A piece that is sent waits in the queue of the end that it is for, and the ready work says "give
// that end its next piece". An end that is paused lets such a turn pass; resume() asks for as many
// turns as there are pieces without one.
//
// Who owns what: a Stream owns its End, an End knows the other one weakly, and all of them share
// the Network, which may therefore die after the transport. The ready work owns ends and, with
// them, the Network; it goes with the transport, which ends that circle.

#include "pv2/rpc/memory_transport.h"

#include <pv2/base/assert.h>
#include <pv2/base/mutex.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

namespace pv2 {

/// Everything is used on the loop's thread, except push().
class MemoryTransport::Network {
 public:
  using Task = std::function<void()>;

  explicit Network(std::shared_ptr<ManualClock> clock)
      : clock_(std::move(clock)), loop_(std::this_thread::get_id()) {}

  /// Appends `task` to the ready work. Thread-safe. In a network that is shut, it is destroyed.
  void push(Task task) {
    MutexLock lock(ready_mutex_);
    if (!shut_.load(std::memory_order_relaxed)) ready_.push_back(std::move(task));
  }

  /// The next thing to do at the present time; null without any.
  [[nodiscard]] Task take() {
    {
      MutexLock lock(ready_mutex_);
      if (!ready_.empty()) {
        Task task = std::move(ready_.front());
        ready_.pop_front();
        return task;
      }
    }
    if (timers_.empty() || timers_.begin()->first.first > clock_->steady_now()) return nullptr;
    return take_timer(timers_.begin());
  }

  TimerId call_at(SteadyTime when, Task task) {
    if (is_shut()) return {};
    const std::uint64_t id = ++last_timer_;
    timers_.emplace(TimerKey(when, id), std::move(task));
    times_.emplace(id, when);
    return {id};
  }

  void cancel(TimerId timer) {
    const auto time = times_.find(timer.value);
    if (time == times_.end()) return;
    // Destroyed here, when the maps are whole again: what the task owned may use this network.
    const Task cancelled = take_timer(timers_.find(TimerKey(time->second, timer.value)));
  }

  [[nodiscard]] std::optional<SteadyTime> next_timer() const {
    if (timers_.empty()) return std::nullopt;
    return timers_.begin()->first.first;
  }

  /// The address that was listened at; kInvalidArgument, kAlreadyExists.
  [[nodiscard]] Result<std::string> open_address(std::string_view wanted, Accept accept) {
    std::string address(wanted);
    if (address.empty())
      return Status(StatusCode::kInvalidArgument, "listen: the address is empty");
    if (is_shut()) return Status(StatusCode::kUnavailable, "listen: the network is gone");
    if (address.ends_with(":0")) address = unused_port(address.substr(0, address.size() - 1));
    const bool is_new =
        acceptors_.emplace(address, std::make_shared<const Accept>(std::move(accept))).second;
    if (!is_new) return Status(StatusCode::kAlreadyExists, "listen: " + address + " is in use");
    return address;
  }

  void close_address(const std::string& address) {
    const auto found = acceptors_.find(address);
    if (found == acceptors_.end()) return;
    const auto closed = std::move(found->second);
    acceptors_.erase(found);
  }

  /// Who listens at `address`, or null. Shared: an acceptor may be destroyed by what it calls.
  [[nodiscard]] std::shared_ptr<const Accept> acceptor_at(const std::string& address) const {
    const auto found = acceptors_.find(address);
    return found == acceptors_.end() ? nullptr : found->second;
  }

  /// Destroys all work without doing it.
  void shut() {
    std::deque<Task> ready;
    {
      MutexLock lock(ready_mutex_);
      shut_.store(true, std::memory_order_relaxed);
      ready.swap(ready_);
    }
    times_.clear();
    // Moved out first: destroying a task may close streams and acceptors of this network.
    const auto timers = std::exchange(timers_, {});
    const auto acceptors = std::exchange(acceptors_, {});
  }

  [[nodiscard]] ManualClock& clock() const noexcept { return *clock_; }
  [[nodiscard]] std::uint64_t next_connection() noexcept { return ++last_connection_; }
  /// The loop is whoever runs it.
  void run_here() noexcept { loop_.store(std::this_thread::get_id(), std::memory_order_relaxed); }
  [[nodiscard]] bool runs_here() const noexcept {
    return loop_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

 private:
  using TimerKey = std::pair<SteadyTime, std::uint64_t>;
  using Timers = std::map<TimerKey, Task>;

  [[nodiscard]] bool is_shut() const noexcept { return shut_.load(std::memory_order_relaxed); }

  Task take_timer(Timers::iterator timer) {
    PV2_ASSERT(timer != timers_.end(), "each timer with a time is in the map of timers");
    Task task = std::move(timer->second);
    times_.erase(timer->first.second);
    timers_.erase(timer);
    return task;
  }

  [[nodiscard]] std::string unused_port(const std::string& host) {
    std::string address;
    do {
      address = host + std::to_string(++last_port_);
    } while (acceptors_.contains(address));
    return address;
  }

  const std::shared_ptr<ManualClock> clock_;
  // Relaxed: it says only whether the caller is the thread that wrote it.
  std::atomic<std::thread::id> loop_;

  Mutex ready_mutex_;
  std::deque<Task> ready_ PV2_GUARDED_BY(ready_mutex_);
  // Written under the mutex, by the loop's thread; that thread reads it without.
  std::atomic<bool> shut_ = false;

  Timers timers_;
  std::unordered_map<std::uint64_t, SteadyTime> times_;  // the other way round, for cancel()
  std::uint64_t last_timer_ = 0;
  std::map<std::string, std::shared_ptr<const Accept>> acceptors_;
  std::uint64_t last_port_ = 40000;
  std::uint64_t last_connection_ = 0;
};

namespace {

using Network = MemoryTransport::Network;

/// One end of a connection, as the other end and the ready work see it.
class End : public std::enable_shared_from_this<End> {
 public:
  End(std::shared_ptr<Network> network, std::string peer)
      : network_(std::move(network)), peer_(std::move(peer)) {}

  static void join(const std::shared_ptr<End>& a, const std::shared_ptr<End>& b) {
    a->other_ = b;
    b->other_ = a;
  }

  void start(StreamListener& listener) {
    PV2_ASSERT(listener_ == nullptr, "a stream is started once");
    listener_ = &listener;
    ask_for_turns();
    if (owes_drained_) ask_to_tell_drained();
  }

  void send(std::string& bytes) {
    const std::string piece = std::exchange(bytes, {});
    if (piece.empty() || is_over_) return;
    unsent_ += piece.size();
    if (const std::shared_ptr<End> other = other_.lock()) {
      other->arrive({.bytes = piece});
    } else {
      // Lost, as bytes are that cross the news of the end.
      handed_over(piece.size());
    }
  }

  [[nodiscard]] std::size_t unsent() const noexcept { return unsent_; }
  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }

  void pause() { is_paused_ = true; }
  void resume() {
    is_paused_ = false;
    ask_for_turns();
  }

  /// Its stream is destroyed: nobody is told anything any more, except the other end.
  void close() {
    listener_ = nullptr;
    is_over_ = true;
    const std::shared_ptr<End> other = other_.lock();
    if (!other) return;
    other->arrive({.is_end = true});
    // Nobody will read what has arrived here.
    if (other->unsent_ > 0) other->handed_over(other->unsent_);
    other->other_.reset();
  }

 private:
  struct Piece {
    std::string bytes{};
    bool is_end = false;
  };

  void arrive(Piece piece) {
    arrived_.push_back(std::move(piece));
    ask_for_turns();
  }

  [[nodiscard]] bool is_reading() const noexcept { return listener_ != nullptr && !is_paused_; }

  void ask_for_turns() {
    if (!is_reading()) return;
    for (; turns_ < arrived_.size(); ++turns_) {
      network_->push([self = shared_from_this()] { self->take_turn(); });
    }
  }

  /// Tells the listener of one piece. It may destroy the stream meanwhile, or pause it.
  void take_turn() {
    PV2_ASSERT(turns_ > 0, "each turn was asked for");
    --turns_;
    if (!is_reading() || arrived_.empty()) return;
    const Piece piece = std::move(arrived_.front());
    arrived_.pop_front();
    if (piece.is_end) {
      is_over_ = true;
      std::exchange(listener_, nullptr)->on_closed(Status());
      return;
    }
    const std::shared_ptr<End> other = other_.lock();
    listener_->on_bytes(piece.bytes);
    if (other) other->handed_over(piece.bytes.size());
  }

  void handed_over(std::size_t bytes) {
    // Less than `bytes` when this end was told of all of them, because the other one has closed.
    unsent_ -= std::min(unsent_, bytes);
    if (unsent_ > 0) return;
    owes_drained_ = true;
    if (listener_ != nullptr) ask_to_tell_drained();
  }

  void ask_to_tell_drained() {
    network_->push([self = shared_from_this()] {
      // More may have been sent since; its end is told then.
      if (self->listener_ == nullptr || self->unsent_ > 0) return;
      if (std::exchange(self->owes_drained_, false)) self->listener_->on_drained();
    });
  }

  const std::shared_ptr<Network> network_;
  const std::string peer_;
  std::weak_ptr<End> other_;
  StreamListener* listener_ = nullptr;  // null before start() and after the last call
  bool is_paused_ = false;
  bool is_over_ = false;
  std::deque<Piece> arrived_;  // not told yet
  std::size_t turns_ = 0;      // in the ready work; while reading, at least one for each piece
  std::size_t unsent_ = 0;     // sent, and not told to the other end's listener
  bool owes_drained_ = false;
};

class MemoryStream final : public Stream {
 public:
  explicit MemoryStream(std::shared_ptr<End> end) : end_(std::move(end)) {}
  ~MemoryStream() override { end_->close(); }
  MemoryStream(const MemoryStream&) = delete;
  MemoryStream& operator=(const MemoryStream&) = delete;

  void start(StreamListener& listener) override { end_->start(listener); }
  void send(std::string& bytes) override { end_->send(bytes); }
  [[nodiscard]] std::size_t unsent() const noexcept override { return end_->unsent(); }
  void pause() override { end_->pause(); }
  void resume() override { end_->resume(); }
  [[nodiscard]] std::string peer() const override { return end_->peer(); }

 private:
  const std::shared_ptr<End> end_;  // shared with the turns in the ready work
};

class MemoryAcceptor final : public StreamAcceptor {
 public:
  MemoryAcceptor(std::shared_ptr<Network> network, std::string address)
      : network_(std::move(network)), address_(std::move(address)) {}
  ~MemoryAcceptor() override { network_->close_address(address_); }
  MemoryAcceptor(const MemoryAcceptor&) = delete;
  MemoryAcceptor& operator=(const MemoryAcceptor&) = delete;

  [[nodiscard]] std::string address() const override { return address_; }

 private:
  const std::shared_ptr<Network> network_;
  const std::string address_;
};

/// Gives the acceptor its end, and the client the other one a turn later.
void open_connection(const std::shared_ptr<Network>& network, const std::string& address,
                     const Transport::Connected& connected) {
  const auto accept = network->acceptor_at(address);
  if (!accept) {
    connected(Status(StatusCode::kUnavailable, "connect: nobody listens at " + address));
    return;
  }
  const std::string client = "memory client " + std::to_string(network->next_connection());
  const auto near = std::make_shared<End>(network, address);
  const auto far = std::make_shared<End>(network, client);
  End::join(near, far);
  // Of a std::function, which can be copied, a stream cannot be a capture. Made here already, so
  // that it closes when the turn never comes.
  const auto stream =
      std::make_shared<std::unique_ptr<Stream>>(std::make_unique<MemoryStream>(near));
  network->push([connected, stream] { connected(std::move(*stream)); });
  (*accept)(std::make_unique<MemoryStream>(far));
}

}  // namespace

MemoryTransport::MemoryTransport(std::shared_ptr<ManualClock> clock)
    : network_(std::make_shared<Network>(std::move(clock))) {}

MemoryTransport::~MemoryTransport() { network_->shut(); }

std::size_t MemoryTransport::run_until_idle(std::size_t most) {
  network_->run_here();
  std::size_t done = 0;
  for (; done < most; ++done) {
    const Network::Task task = network_->take();
    if (!task) break;
    task();
  }
  return done;
}

std::optional<SteadyTime> MemoryTransport::next_timer() const { return network_->next_timer(); }

void MemoryTransport::run_for(Duration step) {
  ManualClock& clock = network_->clock();
  const SteadyTime end = later(clock.steady_now(), step);
  run_until_idle();
  for (auto next = next_timer(); next && *next <= end; next = next_timer()) {
    clock.advance(std::max(*next - clock.steady_now(), Duration::zero()));
    run_until_idle();
  }
  clock.advance(std::max(end - clock.steady_now(), Duration::zero()));
  run_until_idle();
}

void MemoryTransport::post(std::function<void()> task) { network_->push(std::move(task)); }

bool MemoryTransport::on_loop() const noexcept { return network_->runs_here(); }

Clock& MemoryTransport::clock() const noexcept { return network_->clock(); }

TimerId MemoryTransport::call_at(SteadyTime when, std::function<void()> task) {
  return network_->call_at(when, std::move(task));
}

void MemoryTransport::cancel(TimerId timer) { network_->cancel(timer); }

Result<std::unique_ptr<StreamAcceptor>> MemoryTransport::listen(std::string_view address,
                                                                Accept accept) {
  Result<std::string> opened = network_->open_address(address, std::move(accept));
  if (!opened) return opened.status();
  return std::unique_ptr<StreamAcceptor>(std::make_unique<MemoryAcceptor>(network_, *opened));
}

void MemoryTransport::connect(std::string_view address, Duration /*timeout*/, Connected connected) {
  network_->push(
      [network = network_, address = std::string(address), connected = std::move(connected)] {
        if (address.empty()) {
          connected(Status(StatusCode::kInvalidArgument, "connect: the address is empty"));
        } else {
          open_connection(network, address, connected);
        }
      });
}

}  // namespace pv2
