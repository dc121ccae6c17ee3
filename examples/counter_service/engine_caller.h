// SPDX-License-Identifier: Apache-2.0
//
// EngineCaller: makes each operation a procedure of a remote executor: submits it under a nonce,
// and waits for its result.

#pragma once

#include <pv2/remote/remote_executor.h>

#include <memory>
#include <string>

#include "caller.h"

namespace counter {

/// Used as Caller.
class EngineCaller final : public Caller {
 public:
  /// With Dedup::kOff this caller is the control: when a submission gets no answer, it submits the
  /// operation anew, under another nonce.
  EngineCaller(pv2::RpcClient& client, Dedup dedup);
  void add(const AddRequest& request, pv2::CallDone done) override;
  void append(const AppendRequest& request, pv2::CallDone done) override;

 private:
  template <class P>
  struct Operation;
  template <class P>
  void submit(std::shared_ptr<Operation<P>> operation);
  template <class P>
  void submitted(std::shared_ptr<Operation<P>> operation, pv2::SubmitOutcome outcome);
  void wait(pv2::ProcedureId id, std::shared_ptr<pv2::CallDone> done);

  pv2::RemoteExecutor executor_;
  pv2::NonceSource nonces_;
  const Dedup dedup_;
};

}  // namespace counter
