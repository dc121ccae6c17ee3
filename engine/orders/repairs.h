// SPDX-License-Identifier: Apache-2.0
//
// Repairs: the orders of operators. Each order is planned under the state mutex, against a tree
// that stands still where it matters (repair_plan.h), and is one atomic batch with its audit row
// (repair_record.h). An abort is sent as a message instead. An order to end a tree waits until the
// running steps have ended (bypass.h).
//
// An order with a nonce is carried out once at most. Its nonce is in its audit row, so it is there
// if, and only if, the order was carried out, whatever crashed; and while one copy of the order is
// on its way, no other one looks (order_nonces.h).

#pragma once

#include <string>
#include <vector>

#include "core/engine_core.h"
#include "orders/order_nonces.h"

namespace pv2 {

class Messages;
class Publisher;
class Results;

/// Thread-safe.
class Repairs {
 public:
  Repairs(EngineCore& core, Publisher& publisher, Results& results, Messages& messages)
      : core_(core), publisher_(publisher), results_(results), messages_(messages) {}

  /// The reply is OK when the order is durable, else the refusal.
  void repair(ProcedureId id, RepairVerb verb, RepairNote note, Reply<Status> reply);
  /// As repair(), once for each nonce: a copy waits for the answer of the one that is on its way,
  /// or is told what is in the audit.
  OrderTicket repair_once(const Nonce& nonce, ProcedureId id, RepairVerb verb, RepairNote note,
                          Reply<Result<Ordered>> reply);
  /// Takes back the reply of repair_once(). False: it is given, or on its way.
  bool withdraw(const OrderTicket& ticket) { return nonces_.withdraw(ticket); }
  /// What the order would do, one line for each effect; or the refusal that it would get.
  [[nodiscard]] Result<std::vector<std::string>> preview(ProcedureId id, RepairVerb verb);
  /// The orders that were carried out in the tree of a root, or about a child; oldest first. Reads
  /// the store.
  [[nodiscard]] Result<std::vector<AuditEntry>> audit(ProcedureId id);

 private:
  /// Carries out the order of `entry`, which is valid.
  void carry_out(const AuditEntry& entry, Reply<Status> reply);
  /// Carries it out if its nonce is not in the audit, and answers all copies of it.
  void begin_once(const OrderTicket& turn, const AuditEntry& entry);
  void carry_out_once(const OrderTicket& turn, const AuditEntry& entry);
  /// If there is none for the answer either, the process ends: otherwise no copy would be answered.
  // NOLINTNEXTLINE(bugprone-exception-escape)
  void end_without_memory(const OrderTicket& turn, const AuditEntry& entry) noexcept;
  /// Answers a copy that cannot be carried out, because of `refusal`.
  void refuse_once(const AuditEntry& entry, Status refusal, Reply<Result<Ordered>> reply);
  [[nodiscard]] Result<bool> was_carried_out(const AuditEntry& entry);
  /// Answers the order that got its turn with `turn`, and its copies, once.
  void answer_all(const OrderTicket& turn, const Result<Ordered>& answer);

  EngineCore& core_;
  Publisher& publisher_;
  Results& results_;
  Messages& messages_;
  OrderNonces nonces_;
};

}  // namespace pv2
