// SPDX-License-Identifier: Apache-2.0
//
// The bodies of pv2.list and pv2.explain: listings and explanations of the engine, member by
// member. Nothing of them stays behind. What arrives is checked with check(): another program may
// know states and reasons that this one cannot name.

#pragma once

#include <pv2/base/status.h>
#include <pv2/engine/explanation.h>
#include <pv2/engine/procedure_info.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "verb_messages.h"

namespace pv2::remote {

struct KeyMessage {
  ResourceKey value{};
  void fields(auto& f) {
    f(1, "class", value.cls);
    f(2, "name", value.name);
  }
};

struct LockMessage {
  LockRequest value{};
  void fields(auto& f) {
    f(1, "class", value.key.cls);
    f(2, "name", value.key.name);
    f(3, "mode", value.mode);
  }
};

/// A lock set, with the lock first in whose queue the procedure waits.
struct LocksMessage {
  std::vector<LockMessage> locks{};
  LockScope scope = LockScope::kOperation;

  LocksMessage() = default;
  explicit LocksMessage(const LockSet& set);
  [[nodiscard]] LockSet set() const;
  void fields(auto& f) {
    f(1, "locks", locks);
    f(2, "scope", scope);
  }
};

struct HistoryMessage {
  HistoryEntry value{};
  void fields(auto& f) {
    f(1, "step", value.step);
    f(2, "attempt", value.attempt);
    f(3, "outcome", value.outcome);
    f(4, "at", value.at);
    f(5, "undo", value.undo);
  }
};

/// The elements of a list, each in its message, and back.
template <class Message, class Value>
[[nodiscard]] std::vector<Message> to_messages(std::vector<Value> values) {
  std::vector<Message> messages(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) messages[i].value = std::move(values[i]);
  return messages;
}
template <class Value, class Message>
[[nodiscard]] std::vector<Value> to_values(std::vector<Message> messages) {
  std::vector<Value> values(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) values[i] = std::move(messages[i].value);
  return values;
}

struct InfoMessage {
  ProcedureInfo value{};
  void fields(auto& f) {
    LocksMessage locks(value.locks);
    StatusMessage error(value.error);
    StatusMessage undo_error(value.undo_error);
    StatusMessage fields_error(value.fields_error);
    auto history = to_messages<HistoryMessage>(std::move(value.history));
    f(1, "id", value.id);
    f(2, "parent", value.parent);
    f(3, "root", value.root);
    f(4, "type", value.type);
    f(5, "owner", value.owner);
    f(6, "state", value.state);
    f(7, "step", value.step);
    f(8, "step_name", value.step_name);
    f(9, "undo", value.undo);
    f(10, "attempt", value.attempt);
    f(11, "parked", value.parked);
    f(12, "quarantined", value.quarantined);
    f(13, "holds_locks", value.holds_locks);
    f(14, "locks", locks);
    f(15, "error", error);
    f(16, "undo_error", undo_error);
    f(17, "submitted", value.submitted);
    f(18, "updated", value.updated);
    f(19, "history", history);
    f(20, "fields", value.fields);
    f(21, "fields_error", fields_error);
    f(22, "children_done", value.children_done);
    f(23, "children_total", value.children_total);
    f(24, "progress", value.progress);
    value.locks = locks.set();
    value.error = error.status();
    value.undo_error = undo_error.status();
    value.fields_error = fields_error.status();
    value.history = to_values<HistoryEntry>(std::move(history));
  }
};

/// pv2.list.
struct ListMessage {
  ListFilter filter{};
  ProcedureId after{};
  std::uint64_t limit = 0;  ///< 0: as the server likes.
  void fields(auto& f) {
    std::optional<KeyMessage> entity;
    if (filter.entity) entity = KeyMessage{*filter.entity};
    f(1, "state", filter.state);
    f(2, "type", filter.type);
    f(3, "owner", filter.owner);
    f(4, "root", filter.root);
    f(5, "is_root", filter.is_root);
    f(6, "entity", entity);
    f(7, "older_than", filter.older_than);
    f(8, "parked", filter.parked);
    f(9, "quarantined", filter.quarantined);
    f(10, "with_fields", filter.with_fields);
    f(11, "after", after);
    f(12, "limit", limit);
    filter.entity.reset();
    if (entity) filter.entity = std::move(entity->value);
  }
};

/// The answer to pv2.list.
struct PageMessage {
  std::vector<InfoMessage> procedures{};
  ProcedureId next{};
  void fields(auto& f) {
    f(1, "procedures", procedures);
    f(2, "next", next);
  }
};

struct ReasonMessage {
  WaitReason value{};
  void fields(auto& f) {
    KeyMessage key{std::move(value.key)};
    StatusMessage error(value.error);
    f(1, "kind", value.kind);
    f(2, "on", value.on);
    f(3, "more", value.more);
    f(4, "key", key);
    f(5, "name", value.name);
    f(6, "ahead", value.ahead);
    f(7, "count", value.count);
    f(8, "attempt", value.attempt);
    f(9, "age", value.age);
    f(10, "deadline", value.deadline);
    f(11, "left", value.left);
    f(12, "error", error);
    f(13, "heartbeat", value.heartbeat);
    value.key = std::move(key.value);
    value.error = error.status();
  }
};

struct ExplainedMessage {
  Explanation::Procedure value{};
  void fields(auto& f) {
    auto reasons = to_messages<ReasonMessage>(std::move(value.reasons));
    f(1, "id", value.id);
    f(2, "type", value.type);
    f(3, "state", value.state);
    f(4, "step", value.step);
    f(5, "step_name", value.step_name);
    f(6, "undo", value.undo);
    f(7, "reasons", reasons);
    value.reasons = to_values<WaitReason>(std::move(reasons));
  }
};

struct CycleMessage {
  std::vector<ProcedureId> value{};
  void fields(auto& f) { f(1, "members", value); }
};

/// The answer to pv2.explain.
struct ExplanationMessage {
  Explanation value{};
  void fields(auto& f) {
    auto procedures = to_messages<ExplainedMessage>(std::move(value.procedures));
    auto cycles = to_messages<CycleMessage>(std::move(value.cycles));
    f(1, "procedures", procedures);
    f(2, "root_causes", value.root_causes);
    f(3, "cycles", cycles);
    f(4, "left_out", value.left_out);
    value.procedures = to_values<Explanation::Procedure>(std::move(procedures));
    value.cycles = to_values<std::vector<ProcedureId>>(std::move(cycles));
  }
};

/// OK, or kNotSupported: the message has a state, an outcome, a lock or a reason that this program
/// does not know.
[[nodiscard]] Status check(const ResultMessage& result);
[[nodiscard]] Status check(const PageMessage& page);
[[nodiscard]] Status check(const ExplanationMessage& explanation);

/// The encoded page with as many of its procedures as fit into `bytes_max`. The page ends early if
/// not all of them fit. If the first one alone does not fit, it comes without its fields and its
/// locks, and `fields_error` says so.
[[nodiscard]] std::string to_bytes_within(ProcedurePage page, std::size_t bytes_max);

}  // namespace pv2::remote
