// SPDX-License-Identifier: Apache-2.0
//
// OrderNonces: the orders with a nonce that are on their way in this run. At most one order under a
// nonce is carried out at a time; a copy that comes meanwhile waits for its answer. So when an
// order whose turn it is looks for its nonce in the audit (audit_trail.h), every earlier order
// under that nonce is durable or has failed. A crash leaves nothing here.
//
// Invariant: a nonce is here from the turn of its first order until that order has its answer.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/mutex.h>
#include <pv2/base/status.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/reply.h"
#include "pv2/engine/repair.h"

namespace pv2 {

/// What an order is, whoever gives it and why: all copies of one order agree in it.
struct OrderContent {
  ProcedureId procedure;  ///< The one that it names.
  RepairVerb verb = RepairVerb::kRetryNow;
  std::uint32_t next_step = 0;

  friend bool operator==(const OrderContent&, const OrderContent&) = default;
};
/// "skip_step of procedure 7, followed by step 3".
[[nodiscard]] std::string name_of(const OrderContent& order);

/// OK if `earlier` and `order` are the same; kKeyReused names both.
[[nodiscard]] Status why_not_the_same(const Nonce& nonce, const OrderContent& earlier,
                                      const OrderContent& order);

/// Thread-safe.
class OrderNonces {
 public:
  /// How many copies of one order wait for its answer; more are refused. 64: many more than the
  /// callers that give one order together. A caller that asks again withdraws its last copy first.
  static constexpr std::size_t kCopiesMax = 64;

  /// Whose turn it is.
  struct Turn {
    bool is_first = false;  ///< The caller carries the order out, and then calls leave().
    OrderTicket ticket{};   ///< For withdraw().
    Status refusal{};       ///< Not OK: `reply` was not taken.
  };
  /// Keeps `reply` until leave() or withdraw(), unless the order is refused.
  Turn enter(const Nonce& nonce, const OrderContent& order, Reply<Result<Ordered>>& reply);
  struct Waiter {
    std::uint64_t number = 0;
    Reply<Result<Ordered>> reply;
  };
  /// The order that got its turn with `first` has its answer: returns who waits for it, the first
  /// one first. Nobody, if it has had its answer before. Needs no memory.
  std::vector<Waiter> leave(const OrderTicket& first);
  /// Drops the reply of one that waits, also that of the first: the order stays under way. False:
  /// it waits no more.
  bool withdraw(const OrderTicket& ticket);

 private:
  struct UnderWay {
    OrderContent order;
    std::uint64_t first = 0;  // the number of the one that carries the order out
    std::vector<Waiter> waiters;
  };

  Mutex nonces_mutex_;
  std::uint64_t last_number_ PV2_GUARDED_BY(nonces_mutex_) = 0;
  std::unordered_map<Nonce, UnderWay> under_way_ PV2_GUARDED_BY(nonces_mutex_);
};

}  // namespace pv2
