// SPDX-License-Identifier: Apache-2.0
//
// Connection: a socket on its way to become a stream. Accepting and connecting use it without
// knowing whether TLS is spoken.

#pragma once

#include <pv2/base/status.h>

#include <memory>
#include <string>

#include "asio_types.h"
#include "pv2/rpc/transport.h"
#include "tcp_loop.h"

namespace pv2 {

class TlsContext;

/// Owned by the loop's thread.
class Connection {
 public:
  virtual ~Connection() = default;
  [[nodiscard]] virtual LoopSocket& socket() noexcept = 0;

  /// The TLS handshake; plain TCP has none. The connection stays until it is over. kUnavailable
  /// says why it failed.
  [[nodiscard]] virtual Story<Status> greet_as_server() = 0;
  /// The server has to prove that it is `name`, a host name or an IP address.
  [[nodiscard]] virtual Story<Status> greet_as_client(std::string name) = 0;

  /// The finished stream, once. The connection then lives as long as the stream, or a bit longer.
  [[nodiscard]] virtual std::unique_ptr<Stream> make_stream() = 0;

  /// Ends what is going on with an error. May be called again.
  virtual void close() noexcept = 0;
};

/// A connection of plain TCP, or of TLS if there is a context for it. `loop` and `tls` outlive it.
[[nodiscard]] std::shared_ptr<Connection> make_connection(TcpLoop& loop, TlsContext* tls,
                                                          LoopSocket socket);

}  // namespace pv2
