// SPDX-License-Identifier: Apache-2.0
//
// The bodies of what operators ask for: pv2.history, pv2.locks, pv2.preview, pv2.order and
// pv2.audit. Nothing of them stays behind. What arrives is checked with check().

#pragma once

#include <pv2/engine/repair.h>
#include <pv2/scheduler/procedure_scheduler.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "listing_messages.h"
#include "pv2/remote/remote_lock.h"
#include "verb_messages.h"

namespace pv2::remote {

inline constexpr std::string_view kHistory = "pv2.history";
inline constexpr std::string_view kLocks = "pv2.locks";
inline constexpr std::string_view kPreview = "pv2.preview";
inline constexpr std::string_view kOrder = "pv2.order";
inline constexpr std::string_view kAudit = "pv2.audit";

/// The answer to pv2.history, whose body is an IdMessage.
struct HistoryListMessage {
  std::vector<HistoryMessage> entries{};
  void fields(auto& f) { f(1, "entries", entries); }
};

struct PartyMessage {
  RemoteLock::Party value{};
  void fields(auto& f) {
    f(1, "id", value.id);
    f(2, "mode", value.mode);
    f(3, "age", value.age);
    f(4, "type", value.type);
  }
};

struct HeldLockMessage {
  RemoteLock value{};
  void fields(auto& f) {
    KeyMessage key{std::move(value.key)};
    auto holders = to_messages<PartyMessage>(std::move(value.holders));
    auto waiters = to_messages<PartyMessage>(std::move(value.waiters));
    f(1, "key", key);
    f(2, "limit", value.limit);
    f(3, "holders", holders);
    f(4, "waiters", waiters);
    value.key = std::move(key.value);
    value.holders = to_values<RemoteLock::Party>(std::move(holders));
    value.waiters = to_values<RemoteLock::Party>(std::move(waiters));
  }
};

/// The answer to pv2.locks, which has no body.
struct LockListMessage {
  std::vector<HeldLockMessage> locks{};
  std::uint64_t left_out = 0;
  void fields(auto& f) {
    f(1, "locks", locks);
    f(2, "left_out", left_out);
  }
};

/// pv2.order, and pv2.preview, which reads the first two. The nonce of an order is the call's.
/// `who` counts only if the server does not know who calls.
struct OrderMessage {
  ProcedureId id{};
  RepairVerb verb = RepairVerb::kRetryNow;
  std::string who{};
  std::string why{};
  std::uint32_t next_step = 0;
  void fields(auto& f) {
    f(1, "id", id);
    f(2, "verb", verb);
    f(3, "who", who);
    f(4, "why", why);
    f(5, "next_step", next_step);
  }
};

/// The answer to pv2.order.
struct OrderedMessage {
  bool replayed = false;  ///< It had been carried out before.
  void fields(auto& f) { f(1, "replayed", replayed); }
};

/// The answer to pv2.preview.
struct PreviewMessage {
  std::vector<std::string> lines{};
  void fields(auto& f) { f(1, "lines", lines); }
};

struct AuditEntryMessage {
  AuditEntry value{};
  void fields(auto& f) {
    f(1, "verb", value.verb);
    f(2, "procedure", value.procedure);
    f(3, "step", value.step);
    f(4, "who", value.who);
    f(5, "why", value.why);
    f(6, "at", value.at);
    f(7, "nonce_group", value.nonce.group);
    f(8, "nonce_value", value.nonce.value);
    f(9, "named", value.named);
    f(10, "next_step", value.next_step);
  }
};

/// The body of pv2.audit: an AuditRange. An older client sends an IdMessage, which is the same
/// without a range.
struct AuditQueryMessage {
  ProcedureId id{};
  std::uint64_t before = 0;
  std::uint64_t limit = 0;
  void fields(auto& f) {
    f(1, "id", id);
    f(2, "before", before);
    f(3, "limit", limit);
  }
};

/// The answer to pv2.audit.
struct AuditMessage {
  std::vector<AuditEntryMessage> entries{};
  std::uint64_t earlier = 0;
  void fields(auto& f) {
    f(1, "entries", entries);
    f(2, "earlier", earlier);
  }
};

/// OK, or kNotSupported: the message has an outcome, a mode or an order that this program does not
/// know.
[[nodiscard]] Status check(const HistoryListMessage& history);
[[nodiscard]] Status check(const LockListMessage& locks);
[[nodiscard]] Status check(const OrderMessage& order);
[[nodiscard]] Status check(const PreviewMessage& preview);
[[nodiscard]] Status check(const AuditMessage& audit);

/// As of `now`, by the clock of the executor.
[[nodiscard]] RemoteLock to_remote(LockInfo info, SteadyTime now);
/// The encoded locks, as many of them as fit into `bytes_max`.
[[nodiscard]] std::string to_bytes_within(std::vector<LockInfo> infos, SteadyTime now,
                                          std::size_t bytes_max);
/// The encoded page of an audit, `entries`: the newest of the query that fit into `bytes_max`, and
/// at least one if there is one.
[[nodiscard]] std::string to_bytes_within(std::vector<AuditEntry> entries,
                                          const AuditQueryMessage& query, std::size_t bytes_max);

}  // namespace pv2::remote
