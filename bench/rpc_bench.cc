// SPDX-License-Identifier: Apache-2.0
//
// rpc_bench: calls per second over the loopback, and how long one takes, for 1, 16 and 256 clients
// that ask one thing at a time, and for some that have many calls in flight each; next to what
// Boost.Asio alone makes of the same exchange in the same round (harness/bare_echo.h).
//
//     rpc_bench [--quick] ...

#include <fmt/format.h>
#include <pv2/rpc/rpc_client.h>
#include <pv2/rpc/rpc_server.h>
#include <pv2/rpc/tcp_transport.h>

#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/bare_echo.h"
#include "harness/exchange.h"
#include "harness/options.h"
#include "harness/rounds.h"

namespace pv2::bench {
namespace {

// An increment: a name, an amount, and what frames them.
constexpr std::size_t kBodyBytes = 32;
constexpr std::size_t kMessageBytes = 64;

template <class T>
T must(Result<T> result, const char* what) {
  if (result.ok()) return *std::move(result);
  fmt::print(stderr, "rpc_bench: {}: {}\n", what, result.status().to_string());
  std::exit(1);
}

/// Clients that make calls of "echo", each the next when one is answered.
class RpcLoad {
 public:
  RpcLoad(std::size_t clients, std::size_t in_flight) {
    RpcServerOptions options{.transport = serving_};
    options.methods["echo"] = [](IncomingCall call) { call.reply(call.body()); };
    server_ = must(RpcServer::open(std::move(options)), "a server");
    for (std::size_t i = 0; i < clients; ++i) {
      clients_.push_back(must(
          RpcClient::open({.transport = asking_, .addresses = {server_->address()}}), "a client"));
      for (std::size_t call = 0; call < in_flight; ++call) ask(*clients_.back());
    }
  }
  ~RpcLoad() {
    on_loop([this] { is_over_ = true; });
    clients_.clear();
    server_.reset();
  }
  RpcLoad(const RpcLoad&) = delete;
  RpcLoad& operator=(const RpcLoad&) = delete;

  void begin() {
    on_loop([this] { meter_.begin(); });
  }
  Exchanges take() {
    Exchanges taken;
    on_loop([&] { taken = meter_.take(); });
    return taken;
  }

 private:
  void on_loop(const std::function<void()>& work) { run_on_loop(*asking_, work); }

  void ask(RpcClient& client) {
    client.call("echo", std::string(kBodyBytes, 'x'), {.nonce = {1, ++last_}},
                [this, &client, sent = BenchClock::now()](const CallOutcome& outcome) {
                  if (is_over_) return;
                  if (!outcome.ok()) {
                    fmt::print(stderr, "rpc_bench: a call: {}\n", to_string(outcome));
                    std::exit(1);
                  }
                  meter_.count(sent);
                  ask(client);
                });
  }

  std::shared_ptr<Transport> serving_ = must(tcp_transport(), "a transport");
  std::shared_ptr<Transport> asking_ = must(tcp_transport(), "a transport");
  std::unique_ptr<RpcServer> server_;
  std::vector<std::unique_ptr<RpcClient>> clients_;
  std::atomic<std::uint64_t> last_{0};  // calls begin on this thread and go on on the loop's
  ExchangeMeter meter_;
  bool is_over_ = false;
};

struct Load {
  std::size_t clients = 1;
  std::size_t in_flight = 1;
};
constexpr Load kLoads[] = {{1, 1}, {16, 1}, {256, 1}, {1, 64}, {16, 8}, {16, 64}};

class RpcBench {
 public:
  explicit RpcBench(Options options) : options_(std::move(options)) {}

  void run() {
    for (unsigned round = 0; round < options_.runs; ++round) {
      progress(fmt::format("calls over the loopback, round {} of {}", round + 1, options_.runs));
      for (const Load& load : kLoads) measure(load);
    }
    for (const Load& load : kLoads) {
      ResultRow row("rpc");
      row.set("clients", static_cast<double>(load.clients))
          .set("in_flight", static_cast<double>(load.in_flight));
      rounds_[key(load)].fill(row, "calls_per_s");
      row.print();
    }
  }

 private:
  static std::pair<std::size_t, std::size_t> key(const Load& load) {
    return {load.clients, load.in_flight};
  }

  template <class Source>
  Exchanges window_of(Source& source) {
    std::this_thread::sleep_for(options_.warm_up);
    source.begin();
    std::this_thread::sleep_for(options_.window);
    return source.take();
  }

  void measure(const Load& load) {
    const UsageMeter meter;
    const double seconds = std::chrono::duration<double>(options_.window).count();
    const auto echo_of = [&](EchoOf what) {
      BareEcho echo(what, load.clients, load.in_flight, kMessageBytes);
      return window_of(echo);
    };
    Exchanges bytes = echo_of(EchoOf::kBytes);
    Exchanges messages = echo_of(EchoOf::kMessages);
    Exchanges calls;
    {
      RpcLoad rpc(load.clients, load.in_flight);
      calls = window_of(rpc);
    }
    const auto count = static_cast<double>(calls.count);
    rounds_[key(load)].add(
        {.values = {{"calls_per_s", count / seconds},
                    {"p50_us", calls.latencies.percentile(50)},
                    {"p99_us", calls.latencies.percentile(99)},
                    {"echo_per_s", static_cast<double>(bytes.count) / seconds},
                    {"echo_p50_us", bytes.latencies.percentile(50)},
                    {"echo_p99_us", bytes.latencies.percentile(99)},
                    {"messages_per_s", static_cast<double>(messages.count) / seconds},
                    {"ratio", count / static_cast<double>(bytes.count)},
                    {"message_ratio", count / static_cast<double>(messages.count)}},
         .other_cores = meter.stop().other_cores});
  }

  const Options options_;
  std::map<std::pair<std::size_t, std::size_t>, Rounds> rounds_;
};

}  // namespace
}  // namespace pv2::bench

int main(int argc, char** argv) {
  using namespace pv2::bench;
  RpcBench(parse_options(argc, argv, "rpc_bench")).run();
}
