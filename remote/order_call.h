// SPDX-License-Identifier: Apache-2.0
//
// OrderCall: a call that waits for the answer to an order with a nonce. The order may wait for
// hours (a bypass does, for running steps), and its client asks again all the time: a call that is
// cancelled leaves the copies that wait, of which the engine takes 64. The order itself goes on.

#pragma once

#include <pv2/base/mutex.h>
#include <pv2/base/status.h>
#include <pv2/engine/repair.h>
#include <pv2/rpc/incoming_call.h>

#include <memory>

namespace pv2 {

class ProcedureExecutor;

/// Thread-safe.
class OrderCall : public std::enable_shared_from_this<OrderCall> {
 public:
  explicit OrderCall(ProcedureExecutor& executor) : executor_(executor) {}

  /// Gives the order under the nonce of `call`, which is answered when the order is. Called once.
  void begin(const std::shared_ptr<IncomingCall>& call, ProcedureId id, RepairVerb verb,
             RepairNote note);

 private:
  void answer(const Result<Ordered>& ordered);
  void cancel(const Status& why);

  ProcedureExecutor& executor_;
  Mutex mutex_;
  std::shared_ptr<IncomingCall> call_ PV2_GUARDED_BY(mutex_);  // while it waits
  Status cancelled_ PV2_GUARDED_BY(mutex_);                    // before it waited
  OrderTicket ticket_ PV2_GUARDED_BY(mutex_);                  // once the engine has given it
};

}  // namespace pv2
