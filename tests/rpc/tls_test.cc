// SPDX-License-Identifier: Apache-2.0
//
// Who is trusted over TLS, and what the others are told. How TLS streams carry bytes is tested in
// tcp_stream_test.cc, with those of plain TCP.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pv2/rpc/tcp_transport.h"
#include "rpc/loop_harness.h"
#include "support/catch.h"

#ifdef PV2_TLS
#include "rpc/raw_socket.h"
#include "rpc/test_certificates.h"
#include "support/temporary_directory.h"
#include "tcp_acceptor.h"
#include "tls_context.h"
#endif

namespace pv2::testing::tls_test {
namespace {

#ifdef PV2_TLS

std::string message_of(const Status& status) { return std::string(status.message()); }

/// An authority, a server on 127.0.0.1 with a certificate of it, and clients.
class TlsWorld {
 public:
  TlsOptions server_options() {
    return TlsOptions{.certificate_file = server_files.certificate,
                      .private_key_file = server_files.key};
  }
  TlsOptions client_options() { return TlsOptions{.authority_file = authority.certificate()}; }

  std::shared_ptr<Transport> new_transport(std::optional<TlsOptions> tls) {
    const auto sink = [this](LogLevel, std::string_view line) {
      MutexLock lock(log_mutex_);
      log_.emplace_back(line);
      logged_.notify_all();
    };
    auto transport = tcp_transport({.tls = std::move(tls), .log = sink});
    REQUIRE(transport.status() == Status());
    return *std::move(transport);
  }
  std::string wait_for_log() {
    MutexLock lock(log_mutex_);
    while (log_.empty()) logged_.wait(log_mutex_);
    return log_.front();
  }

  void serve(std::optional<TlsOptions> tls) {
    server = new_transport(std::move(tls));
    acceptor = std::make_unique<TestAcceptor>(server);
    REQUIRE(acceptor->listen("127.0.0.1:0") == Status());
    address = acceptor->address();
  }
  Status connect_with(TlsOptions tls) {
    return connect(new_transport(std::move(tls)), address).status();
  }

  TemporaryDirectory files;
  TestAuthority authority{files, "authority"};
  TestAuthority stranger{files, "stranger"};
  CertificateFiles server_files = authority.sign("server", "IP:127.0.0.1,DNS:db.example");

 private:
  Mutex log_mutex_;
  CondVar logged_;
  std::vector<std::string> log_ PV2_GUARDED_BY(log_mutex_);

 public:
  std::shared_ptr<Transport> server;
  std::unique_ptr<TestAcceptor> acceptor;
  std::string address;
};

TEST_CASE_METHOD(TlsWorld, "a server is trusted by its address, or by the name that is expected",
                 "[rpc]") {
  serve(server_options());

  CHECK(connect_with(client_options()) == Status());
  TlsOptions by_name = client_options();
  by_name.server_name = "db.example";
  CHECK(connect_with(by_name) == Status());
}

TEST_CASE_METHOD(TlsWorld, "a server with another name is refused, and the name is told", "[rpc]") {
  serve(server_options());
  TlsOptions other_name = client_options();
  other_name.server_name = GENERATE(std::string("other.example"), std::string("127.0.0.2"),
                                    std::string("db.example.other"), std::string("example"));

  const Status status = connect_with(other_name);

  CHECK(status.code() == StatusCode::kUnavailable);
  CHECK_THAT(message_of(status), ContainsSubstring(address));
  CHECK_THAT(message_of(status), ContainsSubstring("'" + other_name.server_name + "'"));
  CHECK_THAT(message_of(status), ContainsSubstring("mismatch"));
}

TEST_CASE_METHOD(TlsWorld, "a server that another authority signed is refused", "[rpc]") {
  serve(server_options());

  const Status status = connect_with({.authority_file = stranger.certificate()});

  CHECK(status.code() == StatusCode::kUnavailable);
  CHECK_THAT(message_of(status), ContainsSubstring("certificate"));
  CHECK_THAT(message_of(status), ContainsSubstring("unable to get local issuer"));
  CHECK_THAT(wait_for_log(), ContainsSubstring("unknown ca"));
}

TEST_CASE_METHOD(TlsWorld, "a server may ask for its clients' certificates", "[rpc]") {
  TlsOptions asks = server_options();
  asks.authority_file = authority.certificate();
  serve(asks);
  const auto show = [this](const CertificateFiles& shown) {
    TlsOptions tls = client_options();
    tls.certificate_file = shown.certificate;
    tls.private_key_file = shown.key;
    return tls;
  };

  SECTION("one that it knows is let in") {
    CHECK(connect_with(show(authority.sign("client", "DNS:client"))) == Status());
    CHECK(acceptor->next() != nullptr);
  }
  // The client has done its part of the handshake when the server refuses: it hears later.
  SECTION("one without is refused") {
    const auto client = connect(new_transport(client_options()), address);
    REQUIRE(client.status() == Status());
    const Status why = (*client)->start().heard.wait_for_end();
    CHECK(why.code() == StatusCode::kUnavailable);
    CHECK_THAT(message_of(why), ContainsSubstring("certificate required"));
    CHECK_THAT(wait_for_log(), ContainsSubstring("did not return a certificate"));
  }
  SECTION("one of another authority is refused") {
    const auto client =
        connect(new_transport(show(stranger.sign("client", "DNS:client"))), address);
    REQUIRE(client.status() == Status());
    const Status why = (*client)->start().heard.wait_for_end();
    CHECK(why.code() == StatusCode::kUnavailable);
    CHECK_THAT(message_of(why), ContainsSubstring("unknown ca"));
    CHECK_THAT(wait_for_log(), ContainsSubstring("the certificate of the client is refused"));
  }
  CHECK(acceptor->waiting() == 0);
}

TEST_CASE_METHOD(TlsWorld, "a plain client at a TLS server is refused, and the log says why",
                 "[rpc]") {
  serve(server_options());
  const auto plain = connect(new_transport(std::nullopt), address);
  REQUIRE(plain.status() == Status());

  (*plain)->start().send("not a word of TLS, and long enough to see it");

  (void)(*plain)->heard.wait_for_end();
  CHECK_THAT(wait_for_log(), ContainsSubstring("perhaps it does not speak TLS"));
  CHECK(acceptor->waiting() == 0);
}

TEST_CASE_METHOD(TlsWorld, "a TLS client at a plain server is told", "[rpc]") {
  serve(std::nullopt);
  const auto client = new_transport(client_options());
  const auto latch = std::make_shared<Latch<Status>>();
  run_on_loop(*client, [&] {
    client->connect(
        address, std::chrono::minutes(5),
        [latch](Result<std::unique_ptr<Stream>> result) { latch->set(result.status()); });
  });
  const auto accepted = acceptor->next();
  accepted->start().send("hello, this is no TLS");
  latch->wait();

  CHECK(latch->value->code() == StatusCode::kUnavailable);
  CHECK_THAT(message_of(*latch->value), ContainsSubstring("perhaps it does not speak TLS"));
}

TEST_CASE_METHOD(TlsWorld, "a server that says nothing is given up at the deadline", "[rpc]") {
  serve(std::nullopt);

  const Status status =
      connect(new_transport(client_options()), address, std::chrono::milliseconds(20)).status();

  CHECK(status.code() == StatusCode::kDeadlineExceeded);
}

TEST_CASE_METHOD(TlsWorld, "clients that say nothing do not keep others out", "[rpc]") {
  serve(server_options());
  std::vector<RawSocket> silent(50);
  for (RawSocket& socket : silent) socket.connect(address);

  CHECK(connect_with(client_options()) == Status());
  CHECK(acceptor->next() != nullptr);
}

/// A TLS server whose bounds on handshakes are a test's.
class BoundedServer {
 public:
  BoundedServer(const TlsOptions& tls, GreetingLimits limits) {
    auto context = make_tls_context(tls);
    REQUIRE(context.status() == Status());
    context_ = *std::move(context);
    REQUIRE(loop_.start() == Status());
    on_loop([&] {
      auto listening = TcpAcceptor::listen(
          loop_, context_.get(), tcp::endpoint(asio::ip::address_v4::loopback(), 0),
          [](const std::unique_ptr<Stream>&) {}, limits);
      if (!listening.ok()) return;
      acceptor_ = *std::move(listening);
      address = acceptor_->address();
    });
    REQUIRE_FALSE(address.empty());
  }
  ~BoundedServer() {
    on_loop([this] { acceptor_.reset(); });
  }
  std::string address;

 private:
  void on_loop(const std::function<void()>& work) {
    const auto latch = std::make_shared<Latch<int>>();
    loop_.post([&work, latch] {
      work();
      latch->set(0);
    });
    latch->wait();
  }
  std::unique_ptr<TlsContext> context_;
  TcpLoop loop_{[](LogLevel, std::string_view) {}};
  std::unique_ptr<StreamAcceptor> acceptor_;
};

TEST_CASE_METHOD(TlsWorld, "a handshake that does not end is ended at its deadline", "[rpc]") {
  BoundedServer server(server_options(), {.time = std::chrono::milliseconds(5)});
  RawSocket silent;
  silent.connect(server.address);
  silent.wait_for_end();
}

TEST_CASE_METHOD(TlsWorld, "of too many handshakes the oldest is given up", "[rpc]") {
  BoundedServer server(server_options(), {.time = std::chrono::hours(1), .count = 2});
  std::vector<RawSocket> silent(3);
  for (RawSocket& socket : silent) socket.connect(server.address);

  silent.front().wait_for_end();
  CHECK(connect(new_transport(client_options()), server.address).status() == Status());
  silent[1].wait_for_end();
}

TEST_CASE_METHOD(TlsWorld, "a file that cannot be used is named, and so is the reason", "[rpc]") {
  const auto refusal = [](TlsOptions tls) {
    const Status status = tcp_transport({.tls = std::move(tls)}).status();
    CHECK(status.code() == StatusCode::kInvalidArgument);
    return message_of(status);
  };
  const std::string missing = files.path("missing.pem");
  TlsOptions tls = server_options();

  SECTION("no certificate") {
    tls.certificate_file = missing;
    const std::string message = refusal(tls);
    CHECK_THAT(message, ContainsSubstring(missing));
    CHECK_THAT(message, ContainsSubstring("No such file"));
  }
  SECTION("no key") {
    tls.private_key_file = missing;
    const std::string message = refusal(tls);
    CHECK_THAT(message, ContainsSubstring(missing));
    CHECK_THAT(message, ContainsSubstring("No such file"));
  }
  SECTION("no authority") {
    tls.authority_file = missing;
    const std::string message = refusal(tls);
    CHECK_THAT(message, ContainsSubstring(missing));
    CHECK_THAT(message, ContainsSubstring("No such file"));
  }
  SECTION("a directory") {
    tls.authority_file = files.path("");
    CHECK_THAT(refusal(tls), ContainsSubstring(tls.authority_file));
  }
  SECTION("a key where a certificate should be") {
    tls.certificate_file = server_files.key;
    const std::string message = refusal(tls);
    CHECK_THAT(message, ContainsSubstring(server_files.key));
    CHECK_THAT(message, ContainsSubstring("no start line"));
  }
  SECTION("the key of another certificate") {
    tls.private_key_file = authority.sign("other", "DNS:other").key;
    const std::string message = refusal(tls);
    CHECK_THAT(message, ContainsSubstring(tls.private_key_file));
    CHECK_THAT(message, ContainsSubstring("mismatch"));
  }
  SECTION("a certificate without its key") {
    tls.private_key_file.clear();
    CHECK_THAT(refusal(tls), ContainsSubstring("private_key_file"));
  }
}

TEST_CASE_METHOD(TlsWorld, "what TLS needs to listen and to connect is asked for", "[rpc]") {
  const auto client = new_transport(client_options());
  TestAcceptor acceptor_without(client);
  const Status listened = acceptor_without.listen("127.0.0.1:0");
  CHECK(listened.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(message_of(listened), ContainsSubstring("certificate_file"));

  serve(server_options());
  const Status connected = connect(server, address).status();
  CHECK(connected.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(message_of(connected), ContainsSubstring("authority_file"));
}

#else

TEST_CASE("a build without TLS says so", "[rpc]") {
  const Status status = tcp_transport({.tls = TlsOptions()}).status();
  CHECK(status.code() == StatusCode::kNotSupported);
  CHECK_THAT(std::string(status.message()), ContainsSubstring("PV2_TLS"));
}

#endif

}  // namespace
}  // namespace pv2::testing::tls_test
