// SPDX-License-Identifier: Apache-2.0
//
// What a program may be told of locks and repairs, and lists that fit into a frame.

#include "operator_messages.h"

#include <algorithm>

namespace pv2::remote {
namespace {

Status unknown_value(std::string_view what) {
  return {StatusCode::kNotSupported,
          "the message has " + std::string(what) +
              " that this program does not know; the other end may be newer"};
}

bool is_known(LockMode mode) { return mode == LockMode::kShared || mode == LockMode::kExclusive; }

bool is_known(RepairVerb verb) {
  return verb >= RepairVerb::kRetryNow && verb <= RepairVerb::kBypass;
}

bool is_known(const std::vector<RemoteLock::Party>& parties) {
  for (const RemoteLock::Party& party : parties) {
    if (!is_known(party.mode)) return false;
  }
  return true;
}

std::vector<RemoteLock::Party> to_remote(std::vector<LockInfo::Party> parties, SteadyTime now) {
  std::vector<RemoteLock::Party> remote;
  remote.reserve(parties.size());
  for (LockInfo::Party& party : parties) {
    remote.push_back({party.id, party.mode, now - party.since, std::move(party.type)});
  }
  return remote;
}

}  // namespace

Status check(const HistoryListMessage& history) {
  for (const HistoryMessage& entry : history.entries) {
    if (!pv2::is_known(entry.value.outcome)) return unknown_value("an outcome");
  }
  return {};
}

Status check(const LockListMessage& locks) {
  for (const HeldLockMessage& lock : locks.locks) {
    if (!is_known(lock.value.holders) || !is_known(lock.value.waiters)) {
      return unknown_value("a mode");
    }
  }
  return {};
}

Status check(const OrderMessage& order) {
  return is_known(order.verb) ? Status() : unknown_value("an order");
}

Status check(const PreviewMessage& /*preview*/) { return {}; }

Status check(const AuditMessage& audit) {
  for (const AuditEntryMessage& entry : audit.entries) {
    if (!is_known(entry.value.verb)) return unknown_value("an order");
  }
  return {};
}

RemoteLock to_remote(LockInfo info, SteadyTime now) {
  return {.key = std::move(info.key),
          .limit = info.limit,
          .holders = to_remote(std::move(info.holders), now),
          .waiters = to_remote(std::move(info.waiters), now)};
}

std::string to_bytes_within(std::vector<LockInfo> infos, SteadyTime now, std::size_t bytes_max) {
  constexpr std::size_t kFraming = 64;  // of one lock; the list's own is smaller
  LockListMessage message;
  std::size_t bytes = kFraming;
  for (LockInfo& info : infos) {
    HeldLockMessage one{to_remote(std::move(info), now)};
    bytes += to_bytes(one).size() + kFraming;
    if (bytes > bytes_max) break;
    message.locks.push_back(std::move(one));
  }
  message.left_out = infos.size() - message.locks.size();
  return to_bytes(std::move(message));
}

std::string to_bytes_within(std::vector<AuditEntry> entries, const AuditQueryMessage& query,
                            std::size_t bytes_max) {
  constexpr std::size_t kFraming = 64;  // of one entry; the list's own is smaller
  std::size_t end = entries.size();
  if (query.before != 0)
    end = static_cast<std::size_t>(std::min<std::uint64_t>(end, query.before - 1));
  std::size_t begin = end;
  std::size_t bytes = kFraming;
  while (begin > 0 && (query.limit == 0 || end - begin < query.limit)) {
    bytes += to_bytes(AuditEntryMessage{entries[begin - 1]}).size() + kFraming;
    // A page without entries would be asked for again and again.
    if (bytes > bytes_max && begin != end) break;
    --begin;
  }
  entries.resize(end);
  entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(begin));
  return to_bytes(AuditMessage{.entries = to_messages<AuditEntryMessage>(std::move(entries)),
                               .earlier = begin});
}

}  // namespace pv2::remote
