// SPDX-License-Identifier: Apache-2.0
//
// BareEcho: what Boost.Asio alone makes of the exchange that an RPC is: messages of a fixed size,
// sent and sent back. No checksums, no ids, no methods, no time limits: the limits that rpc_bench
// compares with. One thread serves, one thread asks, as in rpc_bench.

#pragma once

#include <cstddef>
#include <memory>

#include "harness/exchange.h"

namespace pv2::bench {

/// What the two ends know of what they send.
enum class EchoOf {
  kBytes,     ///< Nothing: each sends back what it reads, in one piece, and counts the bytes.
  kMessages,  ///< Each message has a length, is copied out, and is given to a function of the host.
};

/// Owned by one thread.
class BareEcho {
 public:
  /// Connects `connections` clients, each with `in_flight` messages of `message_bytes` on the way.
  BareEcho(EchoOf what, std::size_t connections, std::size_t in_flight, std::size_t message_bytes);
  ~BareEcho();
  BareEcho(const BareEcho&) = delete;
  BareEcho& operator=(const BareEcho&) = delete;

  /// What it makes from now on until take() is called.
  void begin();
  [[nodiscard]] Exchanges take();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pv2::bench
