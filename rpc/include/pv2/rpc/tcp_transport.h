// SPDX-License-Identifier: Apache-2.0
//
// The transport of real sockets: TCP, with TLS if it is asked for, on a thread of its own.

#pragma once

#include <pv2/base/log.h>
#include <pv2/base/status.h>

#include <memory>
#include <optional>
#include <string>

#include "pv2/rpc/transport.h"

namespace pv2 {

/// Who this end is, and whom it trusts. Files are PEM. TLS 1.2 and later.
struct TlsOptions {
  /// What it shows: needed to listen; for connecting, if the server asks for it.
  std::string certificate_file{};
  std::string private_key_file{};
  /// Whose signature it trusts. To connect: needed, for there is no connection to a server that is
  /// not proved. To listen: if set, clients have to show a certificate of theirs.
  std::string authority_file{};
  /// The name that the server's certificate must have; empty: the host of the address.
  std::string server_name{};
};

struct TcpOptions {
  std::optional<TlsOptions> tls{};  ///< None: plain TCP.
  /// Addresses other than the loopback's may be listened at. Whoever sets it answers for who can
  /// connect: set `tls`, and a token at the server.
  bool allow_remote = false;
  /// Told of what no caller hears: connections that could not be accepted.
  LogSink log = default_log_sink();
};

/// A transport with one thread, which ends with it. kInvalidArgument: a file of `tls` cannot be
/// used (the message says which and why); kNotSupported: built without TLS; kResourceExhausted: no
/// thread, or no descriptor.
///
/// Addresses are "host:port"; an IPv6 address is in brackets. To listen, the host is a number or
/// localhost; without `allow_remote`, a loopback's. With TLS, a connection is there when the
/// handshake is done: a peer that does not finish it costs a server a descriptor for 10 s, and is
/// given up earlier if 1024 others came after it.
///
/// To be destroyed on another thread than its own, after all streams and acceptors. That destroys
/// tasks, timers and the callbacks of connect() without calling them; it waits for a host name that
/// is being looked up.
[[nodiscard]] Result<std::shared_ptr<Transport>> tcp_transport(TcpOptions options = {});

}  // namespace pv2
