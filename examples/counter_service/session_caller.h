// SPDX-License-Identifier: Apache-2.0
//
// SessionCaller: makes each operation a numbered request of a session, which the server remembers
// until this client says that it has the answer, however long that takes.

#pragma once

#include <pv2/rpc/rpc_session.h>

#include <memory>
#include <string>

#include "caller.h"

namespace counter {

/// Used as Caller.
class SessionCaller final : public Caller {
 public:
  [[nodiscard]] static pv2::Result<std::unique_ptr<Caller>> open(pv2::RpcClient& client);
  void add(const AddRequest& request, pv2::CallDone done) override;
  void append(const AppendRequest& request, pv2::CallDone done) override;
  void end() override;

 private:
  struct Operation;
  void begin(std::string method, std::string body, pv2::CallDone done);
  explicit SessionCaller(std::unique_ptr<pv2::RpcSession> session) : session_(std::move(session)) {}
  void ask(const std::shared_ptr<Operation>& operation);

  std::unique_ptr<pv2::RpcSession> session_;
};

}  // namespace counter
