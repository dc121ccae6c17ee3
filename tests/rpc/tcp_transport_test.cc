// SPDX-License-Identifier: Apache-2.0
//
// The TCP transport besides its streams: addresses, refused and slow connections, an accept that
// fails, timers, posted tasks, and the end of a transport that has things to do.

#include "pv2/rpc/tcp_transport.h"

#include <pv2/base/thread.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rpc/loop_harness.h"
#include "rpc/raw_socket.h"
#include "support/catch.h"
#include "support/no_descriptors.h"

namespace pv2::testing::tcp_transport_test {
namespace {

std::shared_ptr<Transport> new_transport(TcpOptions options = {}) {
  auto transport = tcp_transport(std::move(options));
  REQUIRE(transport.status() == Status());
  return *std::move(transport);
}

/// Where nobody listens: a port that was free a moment ago.
std::string deserted_address(const std::shared_ptr<Transport>& transport) {
  TestAcceptor acceptor(transport);
  REQUIRE(acceptor.listen("127.0.0.1:0") == Status());
  return acceptor.address();
}

/// An address where a connection does not come to stand: the queue of the listener is full.
class Bog {
 public:
  Bog() : address(listener_.listen(0)), waiting_(8) {
    for (RawSocket& socket : waiting_) socket.connect(address, RawSocket::Wait::kNo);
  }

 private:
  RawSocket listener_;

 public:
  const std::string address;

 private:
  std::vector<RawSocket> waiting_;
};

TEST_CASE("a connection can be made by number and by name", "[rpc]") {
  const auto transport = new_transport();
  TestAcceptor acceptor(transport);
  const auto host = GENERATE(std::string_view("127.0.0.1"), std::string_view("localhost"));
  REQUIRE(acceptor.listen(std::string(host) + ":0") == Status());
  const std::string address = acceptor.address();
  REQUIRE_THAT(address, StartsWith("127.0.0.1:"));

  const std::string port = address.substr(address.rfind(':'));
  const auto client = connect(transport, std::string(host) + port);

  REQUIRE(client.status() == Status());
  std::string peer;
  (*client)->run([&] { peer = (*client)->on_loop()->peer(); });
  CHECK(peer == address);
}

TEST_CASE("the address of a listener on IPv6 can be connected to", "[rpc]") {
  const auto transport = new_transport();
  TestAcceptor acceptor(transport);
  if (!acceptor.listen("[::1]:0").ok()) return;  // a machine without IPv6

  const std::string address = acceptor.address();
  CHECK_THAT(address, StartsWith("[::1]:"));
  CHECK(connect(transport, address).status() == Status());
}

TEST_CASE("what is no address is refused with the way to write one", "[rpc]") {
  const auto transport = new_transport();
  const auto address = GENERATE(
      std::string_view(""), std::string_view("127.0.0.1"), std::string_view(":80"),
      std::string_view("127.0.0.1:"), std::string_view("127.0.0.1:http"),
      std::string_view("127.0.0.1:65536"), std::string_view("127.0.0.1:-1"),
      std::string_view("::1:80"), std::string_view("[::1:80"), std::string_view("[name]:80"),
      std::string_view("a b:80"), std::string_view("name\n:80"));
  CAPTURE(address);

  TestAcceptor acceptor(transport);
  const Status listened = acceptor.listen(address);
  CHECK(listened.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(listened.message()), ContainsSubstring("host:port"));
  const Status connected = connect(transport, address).status();
  CHECK(connected.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(connected.message()), ContainsSubstring("host:port"));
}

TEST_CASE("an address that is too long, or has no port to connect to, is refused", "[rpc]") {
  const auto transport = new_transport();
  const std::string endless(100'000, 'x');

  const Status too_long = connect(transport, endless + ":80").status();
  CHECK(too_long.code() == StatusCode::kInvalidArgument);
  CHECK(too_long.message().size() < 1'000);
  CHECK(connect(transport, "127.0.0.1:0").status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("names, and addresses of other machines, cannot be listened at", "[rpc]") {
  const auto transport = new_transport({.allow_remote = true});
  TestAcceptor acceptor(transport);

  CHECK(acceptor.listen("db.example:80").code() == StatusCode::kInvalidArgument);
  // 192.0.2.0/24 belongs to no machine (RFC 5737).
  const Status elsewhere = acceptor.listen("192.0.2.1:0");
  CHECK(elsewhere.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(elsewhere.message()), ContainsSubstring("192.0.2.1:0"));
}

TEST_CASE("other machines are let in only if that is asked for", "[rpc]") {
  const auto closed = new_transport();
  TestAcceptor refused(closed);
  const Status status = refused.listen("0.0.0.0:0");
  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(status.message()), ContainsSubstring("allow_remote"));

  const auto open = new_transport({.allow_remote = true});
  TestAcceptor acceptor(open);
  CHECK(acceptor.listen("0.0.0.0:0") == Status());
}

TEST_CASE("an address in use is named when it is listened at again", "[rpc]") {
  const auto transport = new_transport();
  TestAcceptor first(transport);
  REQUIRE(first.listen("127.0.0.1:0") == Status());
  const std::string address = first.address();

  TestAcceptor second(transport);
  const Status status = second.listen(address);
  CHECK(status.code() == StatusCode::kAlreadyExists);
  CHECK_THAT(std::string(status.message()), ContainsSubstring(address));

  first.stop();
  CHECK(second.listen(address) == Status());
}

TEST_CASE("a connection to nobody is refused with the address and the cause", "[rpc]") {
  const auto transport = new_transport();
  const std::string address = deserted_address(transport);

  const Status status = connect(transport, address).status();

  CHECK(status.code() == StatusCode::kUnavailable);
  CHECK_THAT(std::string(status.message()), ContainsSubstring(address));
  CHECK_THAT(std::string(status.message()), ContainsSubstring("refused"));
}

TEST_CASE("a host that nobody knows is unavailable", "[rpc]") {
  const auto transport = new_transport();
  // .invalid is no domain, and never will be (RFC 2606).
  const Status status = connect(transport, "pv2.invalid:80").status();
  CHECK(status.code() == StatusCode::kUnavailable);
  CHECK_THAT(std::string(status.message()), ContainsSubstring("pv2.invalid:80"));
}

TEST_CASE("a connection that does not come to stand ends at its deadline", "[rpc]") {
  const auto transport = new_transport();
  const Bog bog;

  const Status status = connect(transport, bog.address, std::chrono::milliseconds(20)).status();

  CHECK(status.code() == StatusCode::kDeadlineExceeded);
  CHECK_THAT(std::string(status.message()), ContainsSubstring(bog.address));
  CHECK_THAT(std::string(status.message()), ContainsSubstring("20 ms"));
}

TEST_CASE("connect() calls nobody before it returns, whatever the address is", "[rpc]") {
  const auto transport = new_transport();
  const std::string deserted = deserted_address(transport);
  const auto address = GENERATE_COPY(std::string("nonsense"), deserted);
  const auto timeout = GENERATE(Duration::zero(), Duration(std::chrono::minutes(5)));

  bool within = false;  // used on the loop
  std::atomic<bool> called_within = false;
  const auto latch = std::make_shared<Latch<Status>>();
  run_on_loop(*transport, [&] {
    within = true;
    transport->connect(address, timeout, [&, latch](Result<std::unique_ptr<Stream>> result) {
      if (within) called_within = true;
      latch->set(result.status());
    });
    within = false;
  });
  latch->wait();

  CHECK_FALSE(called_within);
  CHECK_FALSE(latch->value->ok());
}

TEST_CASE("an acceptor that is gone accepts nobody, and its streams stay", "[rpc]") {
  const auto transport = new_transport();
  TestAcceptor acceptor(transport);
  REQUIRE(acceptor.listen("127.0.0.1:0") == Status());
  const std::string address = acceptor.address();
  const auto client = connect(transport, address);
  REQUIRE(client.status() == Status());
  const auto server = acceptor.next();
  server->start();

  acceptor.stop();

  CHECK(connect(transport, address).status().code() == StatusCode::kUnavailable);
  (*client)->send("still here");
  CHECK(server->heard.wait_for_bytes(10) == "still here");
}

TEST_CASE("an acceptor may be destroyed within the call that brings a connection", "[rpc]") {
  const auto transport = new_transport();
  std::unique_ptr<StreamAcceptor> acceptor;
  std::unique_ptr<Stream> accepted;
  std::string address;
  run_on_loop(*transport, [&] {
    auto listening = transport->listen("127.0.0.1:0", [&](std::unique_ptr<Stream> stream) {
      acceptor.reset();
      accepted = std::move(stream);
    });
    if (!listening.ok()) return;
    acceptor = *std::move(listening);
    address = acceptor->address();
  });

  auto client = connect(transport, address);
  REQUIRE(client.status() == Status());
  (*client)->start();
  while (connect(transport, address).ok()) {  // the first accept may not have been served yet
  }
  run_on_loop(*transport, [&] { accepted.reset(); });

  (void)(*client)->heard.wait_for_end();
}

#ifndef PV2_SANITIZER_NEEDS_DESCRIPTORS
TEST_CASE("an acceptor without a descriptor says so, and accepts when there is one", "[rpc]") {
  const auto logged = std::make_shared<Latch<std::string>>();
  const auto lines = std::make_shared<std::atomic<int>>(0);
  const auto transport = new_transport({.log = [=](LogLevel, std::string_view line) {
    if ((*lines)++ == 0) logged->set(std::string(line));
  }});
  TestAcceptor acceptor(transport);
  REQUIRE(acceptor.listen("127.0.0.1:0") == Status());
  const std::string address = acceptor.address();
  RawSocket client;

  {
    const NoDescriptors limit;
    client.connect(address);
    logged->wait();
  }
  const auto server = acceptor.next();

  CHECK_THAT(*logged->value, ContainsSubstring(address));
  CHECK_THAT(*logged->value, ContainsSubstring("Too many open files"));
  CHECK(*lines == 1);
}

TEST_CASE("without descriptors there is no transport, and a Status says why", "[rpc]") {
  const NoDescriptors limit;
  const Status status = tcp_transport().status();
  CHECK(status.code() == StatusCode::kResourceExhausted);
  CHECK_THAT(std::string(status.message()), ContainsSubstring("Too many open files"));
}
#endif

TEST_CASE("without a thread there is no transport, and a Status says why", "[rpc]") {
  limit_new_threads_for_tests(0);
  const Status status = tcp_transport().status();
  limit_new_threads_for_tests(std::nullopt);
  CHECK(status.code() == StatusCode::kResourceExhausted);
}

TEST_CASE("timers are called in the order of their times, then of their making", "[rpc]") {
  const auto transport = new_transport();
  std::vector<int> called;
  const auto latch = std::make_shared<Latch<int>>();
  run_on_loop(*transport, [&] {
    using std::chrono::milliseconds;
    const SteadyTime now = transport->clock().steady_now();
    const auto note = [&called](int number) {
      return [&called, number] { called.push_back(number); };
    };
    transport->call_at(now + milliseconds(3), note(4));
    transport->call_at(now + milliseconds(1), note(2));
    transport->call_at(now + milliseconds(1), note(3));
    transport->call_at(SteadyTime::min(), note(1));
    transport->call_at(SteadyTime::max(), note(99));
    transport->call_at(now + milliseconds(5), [latch] { latch->set(0); });
  });
  latch->wait();

  CHECK(called == std::vector<int>{1, 2, 3, 4});
}

TEST_CASE("no timer is called before its time", "[rpc]") {
  const auto transport = new_transport();
  const auto latch = std::make_shared<Latch<SteadyTime>>();
  SteadyTime due;
  run_on_loop(*transport, [&] {
    due = transport->clock().steady_now() + std::chrono::microseconds(1'500);
    transport->call_at(due, [&transport, latch] { latch->set(transport->clock().steady_now()); });
  });
  latch->wait();

  CHECK(*latch->value >= due);
}

TEST_CASE("a cancelled timer is not called, even if it is due", "[rpc]") {
  const auto transport = new_transport();
  std::vector<std::string> called;
  const auto latch = std::make_shared<Latch<int>>();
  run_on_loop(*transport, [&] {
    const SteadyTime now = transport->clock().steady_now();
    auto later_one = std::make_shared<TimerId>();
    const TimerId first = transport->call_at(now, [&] { called.push_back("cancelled at once"); });
    transport->cancel(first);
    transport->call_at(now, [&, later_one] {
      called.push_back("cancels the next");
      transport->cancel(*later_one);
      transport->cancel(*later_one);
    });
    *later_one = transport->call_at(now, [&] { called.push_back("cancelled when due"); });
    transport->cancel(TimerId());
    transport->call_at(now, [latch] { latch->set(0); });
  });
  latch->wait();

  CHECK(called == std::vector<std::string>{"cancels the next"});
}

TEST_CASE("a timer that sets itself again does not keep the loop from its work", "[rpc]") {
  const auto transport = new_transport();
  std::function<void()> again;
  run_on_loop(*transport, [&] {
    again = [&] { transport->call_at(SteadyTime::min(), again); };
    again();
  });

  TestAcceptor acceptor(transport);
  REQUIRE(acceptor.listen("127.0.0.1:0") == Status());
  CHECK(connect(transport, acceptor.address()).status() == Status());
}

TEST_CASE("posted tasks run on the loop, those of one thread in their order", "[rpc]") {
  const auto transport = new_transport();
  constexpr int kTasks = 10'000;
  std::vector<int> ran[2];
  std::atomic<bool> elsewhere = false;
  const auto post_all = [&](int who) {
    for (int number = 0; number < kTasks; ++number) {
      transport->post([&, who, number] {
        if (!transport->on_loop()) elsewhere = true;
        ran[who].push_back(number);
      });
    }
  };
  auto other = start_thread("poster", "the other poster", [&] { post_all(1); });
  REQUIRE(other.status() == Status());
  post_all(0);
  other->join();
  run_on_loop(*transport, [] {});

  CHECK_FALSE(transport->on_loop());
  CHECK_FALSE(elsewhere);
  for (const auto& numbers : ran) {
    REQUIRE(numbers.size() == kTasks);
    for (int number = 0; number < kTasks; ++number) REQUIRE(numbers[number] == number);
  }
}

TEST_CASE("run_on_loop() on the loop simply runs", "[rpc]") {
  const auto transport = new_transport();
  bool ran = false;
  run_on_loop(*transport, [&] { run_on_loop(*transport, [&] { ran = true; }); });
  CHECK(ran);
}

TEST_CASE("a transport that goes destroys what it was asked for, and calls nobody", "[rpc]") {
  auto transport = new_transport();
  const Bog bog;
  TestAcceptor* const acceptor = new TestAcceptor(transport);
  REQUIRE(acceptor->listen("127.0.0.1:0") == Status());
  delete acceptor;
  std::atomic<bool> called = false;
  const auto token = std::make_shared<int>(0);
  Transport* const raw = transport.get();

  /// Uses the transport when it is destroyed, as what a task owns may do.
  struct Busy {
    Transport* transport;
    std::shared_ptr<int> token;
    TimerId timer{};
    ~Busy() {
      transport->cancel(timer);
      transport->post([token = token] {});
    }
  };
  run_on_loop(*transport, [&] {
    const SteadyTime far = raw->clock().steady_now() + std::chrono::hours(1);
    for (int time = 0; time < 3; ++time) {
      const auto busy = std::make_shared<Busy>(Busy{raw, token});
      busy->timer = raw->call_at(far, [&called, busy] { called = true; });
      raw->connect(bog.address, std::chrono::hours(1),
                   [&called, busy](Result<std::unique_ptr<Stream>>) { called = true; });
    }
  });
  CHECK(token.use_count() > 1);

  transport.reset();

  CHECK_FALSE(called);
  CHECK(token.use_count() == 1);
}

}  // namespace
}  // namespace pv2::testing::tcp_transport_test
