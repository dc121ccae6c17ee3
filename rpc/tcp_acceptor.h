// SPDX-License-Identifier: Apache-2.0
//
// TcpAcceptor: listens at one address, accepts, and hands out the connections that have greeted.

#pragma once

#include <pv2/base/status.h>
#include <pv2/base/time.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "pv2/rpc/transport.h"
#include "tcp_address.h"
#include "tcp_loop.h"

namespace pv2 {

class TlsContext;

/// What a peer that connects and then says nothing may hold.
struct GreetingLimits {
  // A TLS handshake takes two round trips and a few milliseconds of a processor.
  Duration time = std::chrono::seconds(10);
  // Each holds a descriptor and about 100 KiB; a thousand honest clients may come at once.
  std::size_t count = 1024;
};

/// Owned by the loop's thread.
class TcpAcceptor final : public StreamAcceptor {
 public:
  /// kAlreadyExists: the address is in use; kInvalidArgument: it is not this machine's; kIoError.
  /// `loop` and `tls`, which may be null, outlive it.
  [[nodiscard]] static Result<std::unique_ptr<StreamAcceptor>> listen(TcpLoop& loop,
                                                                      TlsContext* tls,
                                                                      const tcp::endpoint& at,
                                                                      Transport::Accept accept,
                                                                      GreetingLimits limits = {});

  /// What its coroutines hold on to.
  class Listening;
  TcpAcceptor(std::shared_ptr<Listening> listening, std::string address)
      : listening_(std::move(listening)), address_(std::move(address)) {}
  ~TcpAcceptor() override;

  std::string address() const override { return address_; }

 private:
  const std::shared_ptr<Listening> listening_;
  const std::string address_;
};

}  // namespace pv2
