// SPDX-License-Identifier: Apache-2.0
//
// ServiceCore: the methods of ExecutorService. Each takes a call on a pool thread of the executor
// and answers it, at once or when the executor has answered.

#pragma once

#include <pv2/rpc/incoming_call.h>

#include <cstddef>
#include <memory>

#include "pv2/remote/executor_service.h"
#include "remote_waits.h"
#include "signal_desk.h"

namespace pv2 {

/// Thread-safe.
class ServiceCore : public std::enable_shared_from_this<ServiceCore> {
 public:
  using Call = std::shared_ptr<IncomingCall>;  // shared with the answer of the executor
  using Verb = void (ServiceCore::*)(Call);

  ServiceCore(ProcedureExecutor& executor, ExecutorServiceOptions options);

  /// The method that has `verb` called on the pool.
  [[nodiscard]] RpcHandler method(Verb verb);

  void submit(Call call);
  void find(Call call);
  void wait(Call call);
  void acknowledge(Call call);
  void abort(Call call);
  void signal(Call call);
  void tell_run(Call call);
  void list(Call call);
  void explain(Call call);
  void history(Call call);
  void locks(Call call);
  void preview(Call call);
  void order(Call call);
  void audit(Call call);

  [[nodiscard]] ExecutorServiceCounts counts() const;

 private:
  /// Refuses the call if the store of the executor is still being loaded.
  [[nodiscard]] bool is_loading(IncomingCall& call) const;
  /// Answers with `body`, or with kNotSupported if it is larger than an answer may be.
  void reply(IncomingCall& call, std::string body) const;
  void refuse_abort(ProcedureId id, const Call& call, const Status& why);

  ProcedureExecutor& executor_;
  const std::size_t answer_bytes_max_;
  const std::shared_ptr<Clock> clock_;
  const std::shared_ptr<RemoteWaits> waits_;
  const std::shared_ptr<SignalDesk> signals_;
};

}  // namespace pv2
