// SPDX-License-Identifier: Apache-2.0
//
// Streams over the loopback, plain and with TLS: what they carry, how they hold back, and how they
// end, also when they are dropped within a call of their listener.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "pv2/rpc/tcp_transport.h"
#include "rpc/loop_harness.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

#ifdef PV2_TLS
#include "rpc/test_certificates.h"
#endif

namespace pv2::testing::tcp_stream_test {
namespace {

constexpr std::size_t kMiB = 1024 * 1024;
// More than the kernel keeps for a connection over the loopback.
constexpr std::size_t kMoreThanTheKernelKeeps = 16 * kMiB;

/// Both ends of a connection.
class Pair {
 public:
  explicit Pair(TcpOptions options) {
    auto made = tcp_transport(std::move(options));
    REQUIRE(made.status() == Status());
    transport = *std::move(made);
    acceptor = std::make_unique<TestAcceptor>(transport);
    REQUIRE(acceptor->listen("127.0.0.1:0") == Status());
    auto connected = connect(transport, acceptor->address());
    REQUIRE(connected.status() == Status());
    client = *std::move(connected);
    server = acceptor->next();
  }

  std::shared_ptr<Transport> transport;
  std::unique_ptr<TestAcceptor> acceptor;
  std::unique_ptr<TestStream> client;
  std::unique_ptr<TestStream> server;
};

/// The tests run over each wire that there is.
class Wires {
 public:
  [[nodiscard]] TcpOptions options([[maybe_unused]] std::string_view wire) const {
    TcpOptions options;
#ifdef PV2_TLS
    if (wire == "TLS") {
      options.tls = TlsOptions{.certificate_file = server_.certificate,
                               .private_key_file = server_.key,
                               .authority_file = authority_.certificate()};
    }
#endif
    return options;
  }
  static auto all() {
#ifdef PV2_TLS
    return GENERATE(std::string_view("TCP"), std::string_view("TLS"));
#else
    return std::string_view("TCP");
#endif
  }

 private:
#ifdef PV2_TLS
  TemporaryDirectory files_;
  TestAuthority authority_{files_, "authority"};
  CertificateFiles server_ = authority_.sign("server", "IP:127.0.0.1");
#endif
};

/// Text in which a piece that is lost, repeated or moved shows.
std::string pattern(std::size_t size) {
  std::string text;
  text.reserve(size + 128);
  for (std::size_t at = 0; text.size() < size; ++at) text += std::to_string(at).append(100, ' ');
  text.resize(size);
  return text;
}

TEST_CASE_METHOD(Wires, "what is sent arrives whole and in order, in both directions", "[rpc]") {
  const auto wire = all();
  CAPTURE(wire);
  Pair pair(options(wire));
  pair.server->heard.bytes_hook = [&](std::string_view bytes) {
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

TEST_CASE_METHOD(Wires, "many small messages that are sent at once arrive in order", "[rpc]") {
  const auto wire = all();
  CAPTURE(wire);
  Pair pair(options(wire));
  pair.server->start();

  std::string all_of_them;
  pair.client->run([&] {
    for (int at = 0; at < 5'000; ++at) {
      std::string message = std::to_string(at) + ';';
      all_of_them += message;
      pair.client->on_loop()->send(message);
      if (!message.empty()) all_of_them = "send() left something in the string";
    }
  });

  CHECK(pair.server->heard.wait_for_bytes(all_of_them.size()) == all_of_them);
}

TEST_CASE_METHOD(Wires, "send() calls no listener, and says what it keeps", "[rpc]") {
  const auto wire = all();
  CAPTURE(wire);
  Pair pair(options(wire));
  pair.client->start();

  bool called_within = false;
  std::size_t kept = 0;
  pair.client->run([&] {
    std::string message = "hello";
    pair.client->on_loop()->send(message);
    kept = pair.client->on_loop()->unsent();
    called_within = pair.client->heard.drained() != 0;
  });
  pair.client->heard.wait_until_drained();

  CHECK_FALSE(called_within);
  CHECK(kept == 5);
  CHECK(pair.client->unsent() == 0);
}

TEST_CASE_METHOD(Wires, "what the other end does not read is kept, until it reads", "[rpc]") {
  const auto wire = all();
  CAPTURE(wire);
  Pair pair(options(wire));
  pair.client->start();

  const std::string text = pattern(kMoreThanTheKernelKeeps);
  pair.client->send(text);
  pair.client->settle();
  CHECK(pair.client->unsent() > 0);
  CHECK(pair.client->heard.drained() == 0);

  pair.server->start();
  CHECK(pair.server->heard.wait_for_bytes(text.size()) == text);
  pair.client->heard.wait_until_drained();
  CHECK(pair.client->unsent() == 0);
}

TEST_CASE_METHOD(Wires, "a paused stream hears nothing, and all of it when it goes on", "[rpc]") {
  const auto wire = all();
  CAPTURE(wire);
  Pair pair(options(wire));
  pair.client->start();
  pair.server->start();
  pair.server->pause();

  pair.client->send("one, ");
  pair.client->heard.wait_until_drained();
  pair.client->settle();
  CHECK(pair.server->heard.bytes().empty());
  pair.server->resume();
  CHECK(pair.server->heard.wait_for_bytes(5) == "one, ");

  pair.server->pause();
  pair.server->resume();
  pair.server->resume();
  pair.client->send("two");
  CHECK(pair.server->heard.wait_for_bytes(8) == "one, two");
}

TEST_CASE_METHOD(Wires, "a stream is paused and resumed within the call that brings bytes",
                 "[rpc]") {
  const auto wire = all();
  CAPTURE(wire);
  Pair pair(options(wire));
  pair.server->heard.bytes_hook = [&](std::string_view bytes) {
    const std::string copy(bytes);
    pair.server->on_loop()->pause();
    if (copy.size() % 2 == 0) pair.server->on_loop()->resume();
    // The bytes stay what they are, whatever the stream is told.
    if (bytes != copy) pair.server->on_loop().reset();
    if (copy.size() % 2 != 0) {
      pair.transport->post([&] { pair.server->on_loop()->resume(); });
    }
  };
  pair.server->start();

  const std::string text = pattern(kMiB + 1);
  for (std::size_t at = 0; at < text.size(); at += 9'999) pair.client->send(text.substr(at, 9'999));

  CHECK(pair.server->heard.wait_for_bytes(text.size()) == text);
  pair.server->settle();
}

TEST_CASE_METHOD(Wires, "a stream that the other end closes ends with OK, after its bytes",
                 "[rpc]") {
  const auto wire = all();
  CAPTURE(wire);
  Pair pair(options(wire));
  pair.client->start();
  pair.server->start();

  pair.client->send("goodbye");
  pair.client->heard.wait_until_drained();
  pair.client->drop();

  CHECK(pair.server->heard.wait_for_end() == Status());
  CHECK(pair.server->heard.bytes() == "goodbye");
  pair.server->send("into the void");  // no mistake
  CHECK(pair.server->unsent() == 0);
}

TEST_CASE_METHOD(Wires, "a connection that is reset ends with a cause that names the other end",
                 "[rpc]") {
  const auto wire = all();
  CAPTURE(wire);
  Pair pair(options(wire));
  std::string peer;
  pair.server->run([&] { peer = pair.server->on_loop()->peer(); });
  pair.server->start();

  pair.server->send("never read");
  pair.server->heard.wait_until_drained();
  pair.client->drop();

  const Status why = pair.server->heard.wait_for_end();
  CHECK(why.code() == StatusCode::kUnavailable);
  CHECK_THAT(std::string(why.message()), ContainsSubstring(peer));
  CHECK_THAT(std::string(why.message()), ContainsSubstring("reset"));
}

TEST_CASE_METHOD(Wires, "a paused stream that cannot send hears of its end", "[rpc]") {
  const auto wire = all();
  CAPTURE(wire);
  Pair pair(options(wire));
  pair.server->start();
  pair.server->pause();

  // If it did not, it would wait for on_drained() for ever.
  pair.server->send(std::string(kMoreThanTheKernelKeeps, 'x'));
  pair.server->settle();
  pair.client->drop();

  CHECK(pair.server->heard.wait_for_end().code() == StatusCode::kUnavailable);
  CHECK(pair.server->unsent() == 0);
}

TEST_CASE_METHOD(Wires, "a stream may be dropped within each call of its listener", "[rpc]") {
  const auto wire = all();
  const auto call = GENERATE(std::string_view("on_bytes"), std::string_view("on_drained"),
                             std::string_view("on_closed"));
  CAPTURE(wire, call);
  Pair pair(options(wire));
  const auto drop = [&] { pair.server->on_loop().reset(); };
  if (call == "on_bytes") {
    pair.server->heard.bytes_hook = [&](std::string_view bytes) {
      std::string reply(bytes);
      pair.server->on_loop()->send(reply);
      drop();
    };
  } else if (call == "on_drained") {
    pair.server->heard.drained_hook = drop;
  } else {
    pair.server->heard.closed_hook = drop;
  }
  pair.server->start();
  pair.client->start();

  pair.client->send(pattern(kMiB));
  if (call == "on_drained") pair.server->send("hello");
  if (call == "on_closed") {
    pair.client->heard.wait_until_drained();
    pair.client->drop();
    (void)pair.server->heard.wait_for_end();
  } else {
    (void)pair.client->heard.wait_for_end();
    CHECK_FALSE(pair.server->heard.is_closed());
  }
  pair.server->settle();
  CHECK(pair.server->on_loop() == nullptr);
}

TEST_CASE_METHOD(Wires, "a stream may be dropped while it reads and writes", "[rpc]") {
  const auto wire = all();
  CAPTURE(wire);
  Pair pair(options(wire));
  pair.server->start();
  pair.client->send(std::string(kMoreThanTheKernelKeeps, 'x'));
  pair.server->send(std::string(kMoreThanTheKernelKeeps, 'y'));
  pair.server->heard.wait_for_bytes(1);

  pair.server->run([&] {
    pair.server->on_loop().reset();
    pair.client->on_loop().reset();
  });
  pair.server->settle();

  CHECK_FALSE(pair.server->heard.is_closed());
}

TEST_CASE_METHOD(Wires, "bytes that came before the start are heard, and so is the end", "[rpc]") {
  const auto wire = all();
  CAPTURE(wire);
  Pair pair(options(wire));
  pair.client->start();
  pair.client->send("early");
  pair.client->heard.wait_until_drained();
  pair.client->drop();

  pair.server->start();

  CHECK(pair.server->heard.wait_for_end() == Status());
  CHECK(pair.server->heard.bytes() == "early");
}

}  // namespace
}  // namespace pv2::testing::tcp_stream_test
