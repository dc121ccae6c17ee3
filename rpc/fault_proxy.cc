// SPDX-License-Identifier: Apache-2.0
//
// FaultProxy: the acceptor and the list of connections. All of it is used on the loop's thread; the
// public class carries each call there.

#include "pv2/rpc/fault_proxy.h"

#include <map>
#include <utility>

#include "fault_connection.h"

namespace pv2 {
namespace {

// A slice of a twentieth of it, times a million, is far from 2^64.
constexpr std::uint64_t kBytesPerSecondMax = 1'000'000'000'000;
constexpr std::size_t kBytesMax = std::size_t{1} << 30U;
constexpr std::size_t kConnectionsMax = 100'000;

Status invalid_proxy(const std::string& what) {
  return {StatusCode::kInvalidArgument, "fault proxy: " + what};
}

bool is_within(std::size_t value, std::size_t most) { return value >= 1 && value <= most; }
bool is_time_limit(Duration time) { return time > Duration::zero() && time <= Fate::kTimeMax; }

Status check(const FaultProxyOptions& options) {
  if (options.transport == nullptr) return invalid_proxy("it needs a transport");
  if (options.target.empty()) return invalid_proxy("the target's address is empty");
  if (options.bytes_per_second > kBytesPerSecondMax) {
    return invalid_proxy("bytes_per_second above 1e12");
  }
  if (!is_within(options.frame_bytes_max, kBytesMax)) {
    return invalid_proxy("frame_bytes_max is not from 1 to 1 GiB");
  }
  if (!is_within(options.kept_bytes_max, kBytesMax)) {
    return invalid_proxy("kept_bytes_max is not from 1 to 1 GiB");
  }
  if (!is_within(options.connections_max, kConnectionsMax)) {
    return invalid_proxy("connections_max is not from 1 to 100000");
  }
  if (!is_time_limit(options.connect_timeout) || !is_time_limit(options.linger)) {
    return invalid_proxy("a time is not from 1 us to 1 hour");
  }
  return {};
}

}  // namespace

/// Owned by the loop's thread.
class FaultProxy::State : public std::enable_shared_from_this<State> {
 public:
  explicit State(FaultProxyOptions options) : world_(std::make_shared<FaultWorld>()) {
    world_->bytes_per_second = options.bytes_per_second;
    world_->options = std::move(options);
  }

  /// Returns where it listens.
  [[nodiscard]] Result<std::string> listen() {
    auto acceptor = world_->options.transport->listen(
        world_->options.listen, [weak = weak_from_this()](std::unique_ptr<Stream> client) {
          if (const auto self = weak.lock()) self->accept(std::move(client));
        });
    if (!acceptor) return acceptor.status().with_context("fault proxy");
    acceptor_ = *std::move(acceptor);
    return acceptor_->address();
  }

  void close() {
    acceptor_.reset();
    end_all();
  }

  void cut_all() { world_->counters.cut_by_hand += end_all(); }

  void half_open_all() {
    for (const auto& [number, connection] : std::map(connections_)) {
      connection->half_open(Direction::kToServer, Fate::HalfOpen::kBoth);
      connection->pump();  // one that was paused reads again
    }
  }

  void set_bytes_per_second(std::uint64_t rate) {
    world_->bytes_per_second = rate;
    for (const auto& [number, connection] : std::map(connections_)) connection->pump();
  }

  void set_new_connections(NewConnections are) { new_connections_ = are; }
  void set_target(std::string target) { world_->options.target = std::move(target); }

  [[nodiscard]] FaultProxyCounters counters() const {
    FaultProxyCounters counters = world_->counters;
    counters.connections = connections_.size();
    for (const auto& [number, connection] : connections_) counters.kept_bytes += connection->kept();
    return counters;
  }

 private:
  void accept(std::unique_ptr<Stream> client) {
    if (new_connections_ == NewConnections::kRefused ||
        connections_.size() >= world_->options.connections_max) {
      ++world_->counters.refused;
      return;  // and `client` is closed
    }
    const std::uint64_t number = ++world_->counters.accepted;
    const auto connection =
        std::make_shared<FaultConnection>(world_, number, [weak = weak_from_this(), number] {
          if (const auto self = weak.lock()) self->connections_.erase(number);
        });
    connections_.emplace(number, connection);
    connection->start(std::move(client));
  }

  /// Returns how many there were.
  std::size_t end_all() {
    // A copy, because each takes itself off the list.
    const auto connections = connections_;
    for (const auto& [number, connection] : connections) connection->end();
    return connections.size();
  }

  const std::shared_ptr<FaultWorld> world_;  // shared with the connections
  std::unique_ptr<StreamAcceptor> acceptor_;
  NewConnections new_connections_ = NewConnections::kAccepted;
  // Shared with what is on a connection's stack while it ends.
  std::map<std::uint64_t, std::shared_ptr<FaultConnection>> connections_;
};

FaultProxy::FaultProxy(Transport& transport, std::shared_ptr<State> state, std::string address)
    : transport_(transport), state_(std::move(state)), address_(std::move(address)) {}

Result<std::unique_ptr<FaultProxy>> FaultProxy::open(FaultProxyOptions options) {
  if (Status status = check(options); !status.ok()) return status;
  Transport& transport = *options.transport;
  auto state = std::make_shared<State>(std::move(options));
  Result<std::string> address = std::string();
  run_on_loop(transport, [&] { address = state->listen(); });
  if (!address) return address.status();
  return std::unique_ptr<FaultProxy>(
      new FaultProxy(transport, std::move(state), *std::move(address)));
}

FaultProxy::~FaultProxy() {
  run_on_loop(transport_, [this] { state_->close(); });
}

void FaultProxy::cut_all() {
  run_on_loop(transport_, [this] { state_->cut_all(); });
}

void FaultProxy::set_new_connections(NewConnections are) {
  run_on_loop(transport_, [this, are] { state_->set_new_connections(are); });
}

Status FaultProxy::set_target(std::string target) {
  if (target.empty()) return invalid_proxy("the target's address is empty");
  run_on_loop(transport_, [&] { state_->set_target(std::move(target)); });
  return {};
}

void FaultProxy::half_open_all() {
  run_on_loop(transport_, [this] { state_->half_open_all(); });
}

Status FaultProxy::set_bytes_per_second(std::uint64_t rate) {
  if (rate > kBytesPerSecondMax) return invalid_proxy("bytes_per_second above 1e12");
  run_on_loop(transport_, [this, rate] { state_->set_bytes_per_second(rate); });
  return {};
}

FaultProxyCounters FaultProxy::counters() const {
  FaultProxyCounters counters;
  run_on_loop(transport_, [this, &counters] { counters = state_->counters(); });
  return counters;
}

}  // namespace pv2
