// SPDX-License-Identifier: Apache-2.0
//
// The two sides of the handshake. OpenSSL compares the certificate's name itself, so a name that
// does not fit is reported as clearly as a signature that nobody trusts.

#ifdef PV2_TLS

#include "tls_wire.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace pv2 {
namespace {

// The server has to be `name`. False: OpenSSL has no memory, or takes no such name.
bool expect_server(SSL* ssl, const std::string& name) {
  X509_VERIFY_PARAM* const rules = SSL_get0_param(ssl);
  error_code no_number;
  (void)asio::ip::make_address(name, no_number);
  if (!no_number) return X509_VERIFY_PARAM_set1_ip_asc(rules, name.c_str()) == 1;
  X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return X509_VERIFY_PARAM_set1_host(rules, name.data(), name.size()) == 1 &&
         SSL_set_tlsext_host_name(ssl, name.c_str()) == 1;
}

// What a peer that does not speak TLS looks like to OpenSSL.
bool looks_plain(const error_code& error) {
  if (error.category() != asio::error::get_ssl_category()) return false;
  const int reason = ERR_GET_REASON(static_cast<unsigned long>(error.value()));
  return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST;
}

}  // namespace

Story<Status> TlsWire::greet_as_server() {
  error_code error;
  if (clients_show_certificates_) {
    const auto required = asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert;
    stream_.set_verify_mode(required, error);
  }
  if (!error)
    std::tie(error) = co_await stream_.async_handshake(asio::ssl::stream_base::server, kAwait);
  if (error) co_return refusal(error, "the client");
  co_return Status();
}

Story<Status> TlsWire::greet_as_client(std::string name) {
  error_code error;
  stream_.set_verify_mode(asio::ssl::verify_peer, error);
  if (!expect_server(stream_.native_handle(), name)) {
    co_return Status(StatusCode::kUnavailable,
                     fmt::format("'{}' cannot be the name of a TLS server", name));
  }
  if (!error)
    std::tie(error) = co_await stream_.async_handshake(asio::ssl::stream_base::client, kAwait);
  if (error) co_return refusal(error, fmt::format("the server, which should be '{}',", name));
  co_return Status();
}

Status TlsWire::refusal(const error_code& error, std::string_view other_end) {
  const long fault = SSL_get_verify_result(stream_.native_handle());
  std::string why;
  if (fault != X509_V_OK) {
    why = fmt::format("the certificate of {} is refused: {}", other_end,
                      X509_verify_cert_error_string(fault));
  } else if (error == asio::error::operation_aborted) {
    why = "the TLS handshake was given up: it took too long, or too many came after it";
  } else if (error == asio::error::eof || error == asio::ssl::error::stream_truncated) {
    why = fmt::format("{} ended the TLS handshake", other_end);
  } else {
    why = fmt::format("the TLS handshake with {} failed: {}", other_end, error.message());
    if (looks_plain(error)) why += "; perhaps it does not speak TLS";
  }
  return Status(StatusCode::kUnavailable, std::move(why));
}

}  // namespace pv2

#endif  // PV2_TLS
