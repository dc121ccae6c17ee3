// SPDX-License-Identifier: Apache-2.0
//
// A server on real sockets with many peers that do nothing, or do it slowly: a good client does not
// notice them, and what they make the server keep is bounded. Waits for events; conditions are
// looked at by a timer of the transport.

#include <pv2/base/latch.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pv2/rpc/frame_reader.h"
#include "pv2/rpc/rpc_client.h"
#include "pv2/rpc/rpc_frame.h"
#include "pv2/rpc/rpc_server.h"
#include "pv2/rpc/tcp_transport.h"
#include "rpc/raw_socket.h"
#include "support/catch.h"

namespace pv2::testing::many_connections_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::size_t kIdle = 1000;
constexpr std::size_t kTrickling = 180;  // send one byte of a frame now and then
constexpr std::size_t kDeaf = 20;        // do not read their answers
constexpr int kCalls = 5000;
// Two of them are more than the kernel keeps for a connection over the loopback.
constexpr std::size_t kBlobBytes = (std::size_t{4} << 20) - 1024;
constexpr std::size_t kUnsentBytesMax = std::size_t{64} << 10;

/// Whether the process may have that many descriptors; raises the soft limit if need be.
bool may_open(rlim_t descriptors) {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  if (limit.rlim_cur >= descriptors) return true;
  limit.rlim_cur = std::min(limit.rlim_max, descriptors);
  return limit.rlim_cur >= descriptors && ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

std::string bytes_of(const RpcFrame& frame) {
  std::string bytes;
  append_rpc_frame(bytes, frame);
  return bytes;
}
std::string hello() { return bytes_of({.kind = FrameKind::kHello, .version = kRpcVersion}); }

/// Looks at `condition` every 5 ms, on the loop of `transport`, until it holds. Shared with the
/// loop, which may still be in look() when the waiting thread has gone on.
struct Watch : std::enable_shared_from_this<Watch> {
  Watch(Transport& on, std::function<bool()> until) : transport(on), condition(std::move(until)) {}

  void look() {
    if (condition()) return holds.set(true);
    transport.call_at(transport.clock().steady_now() + milliseconds(5),
                      [self = shared_from_this()] { self->look(); });
  }

  Transport& transport;
  std::function<bool()> condition;
  Latch<bool> holds;
};

void wait_until(Transport& transport, std::function<bool()> condition) {
  const auto watch = std::make_shared<Watch>(transport, std::move(condition));
  transport.post([watch] { watch->look(); });
  watch->holds.wait();
}

/// Says hello, and then one byte of a large call every 20 ms. Lives on the loop of its transport.
class TricklingPeer final : public StreamListener {
 public:
  TricklingPeer(Transport& transport, std::atomic<std::size_t>& told,
                std::atomic<std::size_t>& ended)
      : transport_(transport), told_(told), ended_(ended) {}

  void start(std::unique_ptr<Stream> stream) {
    stream_ = std::move(stream);
    stream_->start(*this);
    std::string bytes = hello();
    stream_->send(bytes);
    trickle();
  }
  void stop() {
    transport_.cancel(timer_);
    stream_.reset();
  }

  void on_bytes(std::string_view bytes) override {
    reader_.feed(bytes);
    for (auto next = reader_.next(); next.has_frame; next = reader_.next()) {
      const auto frame = decode_rpc_frame(next.bytes);
      if (frame.ok() && frame->kind == FrameKind::kGoAway &&
          frame->message == "the rest of a frame has not arrived in time") {
        ++told_;
      }
    }
  }
  void on_drained() override {}
  void on_closed(const Status&) override {
    stop();
    ++ended_;
  }

 private:
  void trickle() {
    std::string byte(1, call_[sent_++ % call_.size()]);
    stream_->send(byte);
    timer_ = transport_.call_at(transport_.clock().steady_now() + milliseconds(20),
                                [this] { trickle(); });
  }

  Transport& transport_;
  std::atomic<std::size_t>& told_;
  std::atomic<std::size_t>& ended_;
  std::unique_ptr<Stream> stream_;
  FrameReader reader_{4096};
  TimerId timer_;
  const std::string call_ = bytes_of(
      {.kind = FrameKind::kCall, .id = 1, .method = "echo", .body = std::string(100'000, 'x')});
  std::size_t sent_ = 0;
};

/// The slow peers of a test, with a transport of their own.
class TricklingPeers {
 public:
  explicit TricklingPeers(const std::string& address) {
    transport_->post([this, address] {
      for (std::size_t i = 0; i < kTrickling; ++i) {
        auto& peer = peers_.emplace_back(std::make_unique<TricklingPeer>(*transport_, told, ended));
        transport_->connect(address, minutes(5),
                            [&peer = *peer](Result<std::unique_ptr<Stream>> stream) {
                              if (stream.ok()) peer.start(*std::move(stream));
                            });
      }
    });
  }
  ~TricklingPeers() {
    run_on_loop(*transport_, [this] {
      for (const auto& peer : peers_) peer->stop();
    });
  }
  TricklingPeers(const TricklingPeers&) = delete;
  TricklingPeers& operator=(const TricklingPeers&) = delete;

  std::atomic<std::size_t> told{0};   // why they are closed
  std::atomic<std::size_t> ended{0};  // they are closed

 private:
  std::shared_ptr<Transport> transport_ = *tcp_transport();
  std::vector<std::unique_ptr<TricklingPeer>> peers_;
};

/// Makes kCalls calls, of which 64 are open at a time.
class GoodClient {
 public:
  explicit GoodClient(const std::string& address)
      : client_(*RpcClient::open({.transport = *tcp_transport(),
                                  .addresses = {address},
                                  .connect_timeout = minutes(5),
                                  .attempt_timeout = minutes(5)})) {}
  void run(const std::function<void()>& each) {
    each_ = each;
    for (int i = 0; i < 64; ++i) begin_one();
    all_ended_->wait();
  }
  [[nodiscard]] int answered() const { return answered_; }
  [[nodiscard]] RpcClientCounts counts() const { return client_->counts(); }

 private:
  void begin_one() {
    const int index = begun_.fetch_add(1);
    if (index >= kCalls) return;
    std::string body = std::to_string(index);
    client_->call("echo", body, {.timeout = minutes(5)}, [this, body](const CallOutcome& outcome) {
      if (outcome.ok() && outcome.body == body && outcome.attempts == 1) ++answered_;
      each_();
      if (++ended_ == kCalls) return all_ended_->set(true);
      begin_one();
    });
  }

  std::function<void()> each_;
  std::atomic<int> begun_{0};
  std::atomic<int> ended_{0};
  std::atomic<int> answered_{0};
  std::shared_ptr<Latch<bool>> all_ended_ = std::make_shared<Latch<bool>>();
  std::unique_ptr<RpcClient> client_;  // last: its thread uses the others
};

}  // namespace

TEST_CASE("a thousand idle and two hundred slow connections do not disturb a good one") {
  if (!may_open(2 * (kIdle + kTrickling + kDeaf) + 200)) {
    WARN("the hard limit of descriptors (ulimit -Hn) is too low for this test");
    return;
  }
  RpcServerOptions options{.transport = *tcp_transport()};
  options.methods["echo"] = [](IncomingCall call) { call.reply(call.body()); };
  options.methods["blob"] = [](IncomingCall call) { call.reply(std::string(kBlobBytes, 'x')); };
  options.limits = {.unsent_bytes_max = kUnsentBytesMax,
                    .hello_timeout = minutes(5),
                    .frame_timeout = seconds(1),
                    .stalled_timeout = seconds(1)};
  options.log = [](LogLevel, std::string_view) {};
  const auto server = *RpcServer::open(std::move(options));

  std::vector<RawSocket> idle(kIdle);
  for (RawSocket& peer : idle) {
    peer.connect(server->address());
    peer.send(hello());
  }
  std::vector<RawSocket> deaf(kDeaf);
  for (RawSocket& peer : deaf) {
    peer.keep_little();
    peer.connect(server->address());
    peer.send(hello() + bytes_of({.kind = FrameKind::kCall, .id = 1, .method = "blob"}) +
              bytes_of({.kind = FrameKind::kCall, .id = 2, .method = "blob"}));
  }
  TricklingPeers trickling(server->address());
  GoodClient good(server->address());
  std::size_t memory_seen = 0;  // by the good client's thread
  good.run([&] { memory_seen = std::max(memory_seen, server->counts().memory); });

  CHECK(good.answered() == kCalls);
  // Two answers of each deaf peer, and less than 1 MiB for all the others.
  CHECK(memory_seen <= kDeaf * 2 * (kBlobBytes + 1024) + (std::size_t{1} << 20));

  const std::shared_ptr<Transport> transport = *tcp_transport();
  wait_until(*transport, [&] { return server->counts().broken == kTrickling + kDeaf; });
  wait_until(*transport, [&] { return trickling.ended == kTrickling; });
  // One that was sending at the moment of the end may see the end before the reason.
  CHECK(trickling.told >= kTrickling / 2);
  wait_until(*transport, [&] { return server->counts().memory == 0; });
  const RpcServerCounts counts = server->counts();
  CHECK(counts.connections == kIdle + 1);
  CHECK(counts.accepted == kIdle + kTrickling + kDeaf + 1);
  CHECK(counts.calls_in_flight == 0);
  CHECK(good.counts().connections == 1);
}

}  // namespace pv2::testing::many_connections_test
