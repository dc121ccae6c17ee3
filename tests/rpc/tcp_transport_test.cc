// SPDX-License-Identifier: Apache-2.0
//
// The TCP transport, over the loopback: streams, addresses, deadlines, timers and posted tasks, and
// what happens when any of them is dropped in the midst of things. TLS is in tls_test.cc.

#include "pv2/rpc/tcp_transport.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rpc/loop_harness.h"
#include "support/catch.h"

namespace pv2::testing::tcp_transport_test {
namespace {

constexpr std::size_t kMiB = 1024 * 1024;

std::shared_ptr<Transport> new_transport(TcpOptions options = {}) {
  auto transport = tcp_transport(std::move(options));
  REQUIRE(transport.status() == Status());
  return *std::move(transport);
}

/// Both ends of a connection.
struct Pair {
  explicit Pair(const std::shared_ptr<Transport>& transport) : acceptor(transport) {
    REQUIRE(acceptor.listen("127.0.0.1:0") == Status());
    auto connected = connect(transport, acceptor.address());
    REQUIRE(connected.status() == Status());
    client = *std::move(connected);
    server = acceptor.next();
  }
  TestAcceptor acceptor;
  std::unique_ptr<TestStream> client;
  std::unique_ptr<TestStream> server;
};

/// Text in which a piece that is lost, repeated or moved shows.
std::string pattern(std::size_t size) {
  std::string text;
  text.reserve(size + 16);
  for (std::size_t at = 0; text.size() < size; ++at) text += std::to_string(at) + ' ';
  text.resize(size);
  return text;
}

TEST_CASE("what is sent arrives whole and in order, in both directions", "[rpc]") {
  const auto transport = new_transport();
  Pair pair(transport);
  pair.server->heard.hook = [&](std::string_view bytes) {
    std::string echo(bytes);
    pair.server->on_loop()->send(echo);
  };
  pair.server->start();
  pair.client->start();

  const std::string text = pattern(8 * kMiB);
  for (std::size_t at = 0; at < text.size(); at += 100'000) {
    pair.client->send(text.substr(at, 100'000));
  }

  CHECK(pair.client->heard.wait_for_bytes(text.size()) == text);
  CHECK(pair.server->heard.bytes() == text);
}

}  // namespace
}  // namespace pv2::testing::tcp_transport_test
