// SPDX-License-Identifier: Apache-2.0
//
// RpcServer: accepts connections, reads calls, and gives each to the handler of its method. It
// knows nothing of nonces but their names: recognising a call that was made before is the
// handler's business. What it does promise is that one call of one connection reaches its handler
// at most once, however often the network repeats it.
//
// How it fails: a peer that breaks the protocol or a limit is told why and loses its connection,
// and no other one notices.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/log.h>
#include <pv2/base/status.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/rpc/incoming_call.h"
#include "pv2/rpc/transport.h"

namespace pv2 {

class ServerCore;

/// Answers the calls of one method: at once, or later from any thread. Called on the loop's thread,
/// so it must not block: everybody else waits. What it throws is logged, and the call that it did
/// not answer ends as kUnknownOutcome.
using RpcHandler = std::function<void(IncomingCall)>;

/// The methods of a server, by name. A name has 1 to 256 bytes.
using RpcMethods = std::map<std::string, RpcHandler, std::less<>>;

/// A secret that lets its bearer in, and the name under which its calls are made.
struct BearerToken {
  std::string token;  ///< 16 to 1024 bytes.
  std::string owner;
};

/// What one server lets peers make it keep, and for how long it waits for them.
struct RpcLimits {
  std::size_t connections_max = 4096;
  /// The limit of a frame, without its header.
  std::size_t frame_bytes_max = std::size_t{4} << 20;
  /// The limit of calls of one connection without an answer. The server tells it to the client,
  /// which sends no more.
  std::size_t calls_max = 1024;
  /// When more answers of one connection wait for the network, the server reads no more from this
  /// client, and drops notes.
  std::size_t unsent_bytes_max = std::size_t{1} << 20;
  /// What the calls and answers of all connections may take, in bytes. Beyond it the server refuses
  /// new calls with kResourceExhausted, and closes a connection that has more answers waiting than
  /// `unsent_bytes_max`.
  std::size_t memory_max = std::size_t{256} << 20;
  /// A client has this long to say a good hello.
  Duration hello_timeout = std::chrono::seconds(5);
  /// The last byte of a frame has to follow the first one within this time.
  Duration frame_timeout = std::chrono::seconds(30);
  /// A client that takes none of the bytes that wait for it loses its connection after this time.
  Duration stalled_timeout = std::chrono::seconds(30);
  /// The server gives up a connection from which it hears nothing for so long. RpcClient pings when
  /// it has nothing else to say.
  Duration idle_timeout = std::chrono::minutes(10);
};

struct RpcServerOptions {
  std::shared_ptr<Transport> transport{};  ///< Has to be set.
  /// The server listens here: at the loopback, unless the transport allows more (TcpOptions).
  std::string address = "127.0.0.1:0";
  RpcMethods methods{};
  /// Nobody gets in without one of these. Empty: everybody does.
  std::vector<BearerToken> tokens{};
  RpcLimits limits{};
  LogSink log{};  ///< Without one, warnings and errors go to stderr.
};

/// What a server has seen since it was opened, and has now.
struct RpcServerCounts {
  std::size_t connections = 0;      ///< Now.
  std::size_t calls_in_flight = 0;  ///< Now, those of closed connections included.
  std::size_t memory = 0;           ///< Now: bytes that count for RpcLimits::memory_max.
  std::uint64_t accepted = 0;       ///< Connections.
  std::uint64_t turned_away = 0;    ///< Connections: too many, or no token.
  std::uint64_t broken = 0;         ///< Connections that broke the protocol or a limit.
  std::uint64_t calls = 0;          ///< Given to handlers.
  std::uint64_t refused = 0;        ///< By the server itself: limits, no such method, stopping.
  std::uint64_t repeated = 0;       ///< Frames of calls that had arrived before, and were dropped.
};

/// Thread-safe, except construction and destruction.
class RpcServer {
 public:
  /// Listens, and serves from now on. kInvalidArgument names the option that is wrong;
  /// kAlreadyExists, kIoError: it cannot listen there.
  [[nodiscard]] static Result<std::unique_ptr<RpcServer>> open(RpcServerOptions options);
  /// Closes all connections at once. Calls that are being handled may still be answered: nobody
  /// hears it. A thread of the transport's own must not destroy the server.
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  /// The server listens here; the port is the one that the system chose.
  [[nodiscard]] const std::string& address() const noexcept;

  /// Accepts no more connections and calls, tells handlers that wait (IncomingCall::on_cancel) and
  /// clients. A connection ends when its calls are answered and its client has left, a second after
  /// the last answer, or after `grace`. `stopped` is called on the loop's thread when all have
  /// ended. A second call only waits as well.
  void stop(Duration grace, std::function<void()> stopped);
  /// As above, and returns when all have ended; without waiting if the transport has no thread of
  /// its own, or the caller is on it.
  void stop(Duration grace);

  [[nodiscard]] RpcServerCounts counts() const;

 private:
  RpcServer(std::shared_ptr<Transport> transport, std::shared_ptr<ServerCore> core);
  std::shared_ptr<Transport> transport_;
  std::shared_ptr<ServerCore> core_;
};

}  // namespace pv2
