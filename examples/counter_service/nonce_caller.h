// SPDX-License-Identifier: Apache-2.0
//
// NonceCaller: names each operation by a nonce, which is made before the first call and kept until
// the outcome is known. Nothing else has to be remembered.

#pragma once

#include <pv2/rpc/nonce_source.h>

#include <memory>
#include <string>

#include "caller.h"

namespace counter {

/// Used as Caller.
class NonceCaller final : public Caller {
 public:
  explicit NonceCaller(pv2::RpcClient& client) : client_(client) {}
  void add(const AddRequest& request, pv2::CallDone done) override;
  void append(const AppendRequest& request, pv2::CallDone done) override;

 private:
  struct Operation;
  void begin(std::string method, std::string body, pv2::CallDone done);
  void ask(std::shared_ptr<Operation> operation);

  pv2::RpcClient& client_;
  pv2::NonceSource nonces_;
};

}  // namespace counter
