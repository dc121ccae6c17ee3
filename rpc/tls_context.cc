// SPDX-License-Identifier: Apache-2.0
//
// One OpenSSL context serves both sides. It trusts no authority by itself: the system's are for
// the web, and would let any of its sites pose as ours.

#include "tls_context.h"

#ifdef PV2_TLS

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <boost/system/system_error.hpp>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

#include "socket_stream.h"
#include "tls_wire.h"

namespace pv2 {
namespace {

Status invalid_tls(std::string message) {
  return Status(StatusCode::kInvalidArgument, "TLS: " + std::move(message));
}

// OpenSSL's own words for a file that is not there are not for people.
Status unreadable(const std::string& file, std::string_view what) {
  std::FILE* const opened = std::fopen(file.c_str(), "r");
  if (opened == nullptr) {
    return invalid_tls(fmt::format("{} cannot be read from '{}': {}", what, file,
                                   std::generic_category().message(errno)));
  }
  std::fclose(opened);
  return Status();
}

class OpenSslContext final : public TlsContext {
 public:
  explicit OpenSslContext(const TlsOptions& options) : options_(options) {
    SSL_CTX* const context = context_.native_handle();
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
    // Connections are few and long: a session that could be resumed is not worth its memory.
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context, 0);
  }

  Status load() {
    if (options_.certificate_file.empty() != options_.private_key_file.empty()) {
      return invalid_tls(
          "certificate_file and private_key_file belong together, and one is not set");
    }
    Status loaded = use(options_.certificate_file, "a certificate", [this](error_code& error) {
      context_.use_certificate_chain_file(options_.certificate_file, error);
    });
    if (!loaded.ok()) return loaded;
    // Without this OpenSSL would ask for the password of an encrypted key, at the terminal.
    context_.set_password_callback([](auto&&...) { return std::string(); });
    loaded =
        use(options_.private_key_file, "the certificate's private key", [this](error_code& error) {
          context_.use_private_key_file(options_.private_key_file, asio::ssl::context::pem, error);
        });
    if (!loaded.ok()) return loaded;
    return use(options_.authority_file, "the authorities' certificates", [this](error_code& error) {
      context_.load_verify_file(options_.authority_file, error);
    });
  }

  Status can_listen() const override {
    if (!options_.certificate_file.empty()) return Status();
    return invalid_tls("to listen, TlsOptions needs certificate_file and private_key_file");
  }
  Status can_connect() const override {
    if (!options_.authority_file.empty()) return Status();
    return invalid_tls(
        "to connect, TlsOptions needs authority_file: whose signature proves a server");
  }
  std::string server_name(const std::string& host) const override {
    return options_.server_name.empty() ? host : options_.server_name;
  }
  std::shared_ptr<Connection> connection(TcpLoop& loop, LoopSocket socket) override {
    return std::make_shared<SocketConnection<TlsWire>>(
        loop, TlsWire(std::move(socket), context_, !options_.authority_file.empty()));
  }

 private:
  template <class Load>
  Status use(const std::string& file, std::string_view what, Load load) {
    if (file.empty()) return Status();
    if (const Status status = unreadable(file, what); !status.ok()) return status;
    error_code error;
    load(error);
    if (!error) return Status();
    return invalid_tls(fmt::format("'{}' cannot be used as {}: {}", file, what, error.message()));
  }

  const TlsOptions options_;
  asio::ssl::context context_{asio::ssl::context::tls};
};

}  // namespace

Result<std::unique_ptr<TlsContext>> make_tls_context(const TlsOptions& options) {
  try {
    auto context = std::make_unique<OpenSslContext>(options);
    if (const Status loaded = context->load(); !loaded.ok()) return loaded;
    return std::unique_ptr<TlsContext>(std::move(context));
  } catch (const boost::system::system_error& failure) {
    return invalid_tls(fmt::format("OpenSSL cannot be used: {}", failure.what()));
  }
}

}  // namespace pv2

#else

namespace pv2 {

Result<std::unique_ptr<TlsContext>> make_tls_context(const TlsOptions& /*options*/) {
  return Status(StatusCode::kNotSupported,
                "this pv2 was built without TLS; build it with -DPV2_TLS=ON, which needs OpenSSL");
}

}  // namespace pv2

#endif  // PV2_TLS
