// SPDX-License-Identifier: Apache-2.0
//
// RemoteWaits: calls that wait for procedures to end. All calls for one procedure share one wait of
// the engine. A call that is cancelled leaves at once, and the last one takes that wait back: a
// client that asks again and again costs no more than one that asks once.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/mutex.h>
#include <pv2/engine/procedure_result.h>
#include <pv2/rpc/incoming_call.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace pv2 {

class ProcedureExecutor;

/// Thread-safe.
class RemoteWaits : public std::enable_shared_from_this<RemoteWaits> {
 public:
  /// A result with more bytes is not sent.
  RemoteWaits(ProcedureExecutor& executor, std::size_t answer_bytes_max)
      : executor_(executor), answer_bytes_max_(answer_bytes_max) {}

  /// Answers `call` when `id` has ended, or with the reason why no answer will come. May read the
  /// store.
  void add(ProcedureId id, std::shared_ptr<IncomingCall> call);

  [[nodiscard]] std::size_t calls() const;
  [[nodiscard]] std::size_t procedures() const;

 private:
  struct Waiter {
    ProcedureId id;
    std::shared_ptr<IncomingCall> call;  // nullptr: it is being added
    Status cancelled;                    // while it was being added
  };
  // The calls that wait for one procedure.
  struct Crowd {
    std::uint64_t number = 0;  // tells this crowd from a later one for the same procedure
    std::set<std::uint64_t> waiters;
    WaitTicket ticket;  // once the engine has given it
    bool has_ticket = false;
  };

  void cancel(std::uint64_t waiter, const Status& why);
  void begin(ProcedureId id, std::uint64_t crowd);
  void answer(ProcedureId id, std::uint64_t crowd, const Result<ProcedureResult>& result);
  /// Ends the crowd of `id` if nobody is left in it. The ticket is to be withdrawn.
  WaitTicket end_if_empty(ProcedureId id) PV2_REQUIRES(mutex_);

  ProcedureExecutor& executor_;
  const std::size_t answer_bytes_max_;
  mutable Mutex mutex_;
  std::uint64_t last_number_ PV2_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, Waiter> waiters_ PV2_GUARDED_BY(mutex_);
  std::map<ProcedureId, Crowd> crowds_ PV2_GUARDED_BY(mutex_);
};

}  // namespace pv2
