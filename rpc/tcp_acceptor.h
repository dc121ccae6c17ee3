// SPDX-License-Identifier: Apache-2.0
//
// TcpAcceptor: listens at one address, accepts, and hands out the connections that have greeted.

#pragma once

#include <pv2/base/status.h>

#include <memory>
#include <string>
#include <utility>

#include "pv2/rpc/transport.h"
#include "tcp_address.h"
#include "tcp_loop.h"

namespace pv2 {

class TlsContext;

/// Owned by the loop's thread.
class TcpAcceptor final : public StreamAcceptor {
 public:
  /// kAlreadyExists: the address is in use; kInvalidArgument: it is not this machine's; kIoError.
  /// `loop` and `tls`, which may be null, outlive it.
  [[nodiscard]] static Result<std::unique_ptr<StreamAcceptor>> listen(TcpLoop& loop,
                                                                      TlsContext* tls,
                                                                      const tcp::endpoint& at,
                                                                      Transport::Accept accept);

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
