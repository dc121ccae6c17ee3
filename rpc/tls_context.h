// SPDX-License-Identifier: Apache-2.0
//
// TlsContext: the certificates and rules of one transport, read from files once. Without PV2_TLS
// there is none, and making one says so.

#pragma once

#include <pv2/base/status.h>

#include <memory>
#include <string>

#include "connection.h"
#include "pv2/rpc/tcp_transport.h"
#include "tcp_loop.h"

namespace pv2 {

/// Owned by the loop's thread, once it is made.
class TlsContext {
 public:
  virtual ~TlsContext() = default;
  /// Whether the options allow it; kInvalidArgument says what is missing.
  [[nodiscard]] virtual Status can_listen() const = 0;
  [[nodiscard]] virtual Status can_connect() const = 0;
  /// The name that the server at `host` has to prove.
  [[nodiscard]] virtual std::string server_name(const std::string& host) const = 0;
  /// A connection that will speak TLS. The context and `loop` outlive it.
  [[nodiscard]] virtual std::shared_ptr<Connection> connection(TcpLoop& loop,
                                                               LoopSocket socket) = 0;
};

/// kInvalidArgument: a file cannot be used; the message names the file and the reason.
/// kNotSupported: built without TLS.
[[nodiscard]] Result<std::unique_ptr<TlsContext>> make_tls_context(const TlsOptions& options);

}  // namespace pv2
