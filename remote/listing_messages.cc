// SPDX-License-Identifier: Apache-2.0
//
// Lock sets as lists, what a program may be told, and pages that fit into a frame.

#include "listing_messages.h"

#include <fmt/format.h>

namespace pv2::remote {
namespace {

template <class Enum>
bool is_within(Enum value, Enum first, Enum last) {
  return value >= first && value <= last;
}

bool is_known(ProcedureState state) {
  return is_within(state, ProcedureState::kInitializing, ProcedureState::kFailed);
}

bool is_known(const LockSet& locks) {
  for (const LockRequest& request : locks.requests()) {
    if (!is_within(request.mode, LockMode::kShared, LockMode::kExclusive)) return false;
  }
  return is_within(locks.scope(), LockScope::kOperation, LockScope::kVisit);
}

bool is_known(const ProcedureInfo& info) {
  for (const HistoryEntry& entry : info.history) {
    if (!pv2::is_known(entry.outcome)) return false;
  }
  return is_known(info.state) && is_known(info.locks);
}

bool is_known(const Explanation::Procedure& procedure) {
  for (const WaitReason& reason : procedure.reasons) {
    if (!is_within(reason.kind, WaitReason::Kind::kSubmitting, WaitReason::Kind::kFinished)) {
      return false;
    }
  }
  return is_known(procedure.state);
}

Status unknown_answer(std::string_view what) {
  return Status(StatusCode::kNotSupported,
                fmt::format("the server says of {} what this program does not know; the server may "
                            "be newer",
                            what));
}

// Drops from `info` what has no bound of its own.
void make_small(ProcedureInfo& info, std::size_t bytes_max) {
  info.fields.clear();
  info.progress.clear();
  info.fields_error =
      Status(StatusCode::kNotSupported,
             fmt::format("with its fields and locks it is larger than an answer may be ({} bytes)",
                         bytes_max));
  info.locks = LockSet();
}

}  // namespace

LocksMessage::LocksMessage(const LockSet& set) : scope(set.scope()) {
  locks.reserve(set.requests().size());
  for (const LockRequest& request : set.requests()) {
    locks.push_back({request});
    if (request.key == set.primary()) std::swap(locks.front(), locks.back());
  }
}

LockSet LocksMessage::set() const {
  LockSet set;
  for (const LockMessage& lock : locks) set.key(lock.value.key, lock.value.mode);
  return set.scope(scope);
}

Status check(const ResultMessage& result) {
  return is_finished(result.value.state) ? Status() : unknown_answer("the end of a procedure");
}

Status check(const PageMessage& page) {
  for (const InfoMessage& info : page.procedures) {
    if (!is_known(info.value)) return unknown_answer("a procedure");
  }
  return Status();
}

Status check(const ExplanationMessage& explanation) {
  for (const Explanation::Procedure& procedure : explanation.value.procedures) {
    if (!is_known(procedure)) return unknown_answer("a procedure that waits");
  }
  return Status();
}

std::string to_bytes_within(ProcedurePage page, std::size_t bytes_max) {
  constexpr std::size_t kFraming = 64;  // of one procedure; the page's own is smaller
  PageMessage message{.next = page.next};
  std::size_t bytes = kFraming;
  for (ProcedureInfo& info : page.procedures) {
    InfoMessage one{std::move(info)};
    std::size_t size = to_bytes(one).size() + kFraming;
    if (bytes + size > bytes_max && !message.procedures.empty()) {
      message.next = message.procedures.back().value.id;
      break;
    }
    if (bytes + size > bytes_max) {
      make_small(one.value, bytes_max);
      size = to_bytes(one).size() + kFraming;
    }
    bytes += size;
    message.procedures.push_back(std::move(one));
  }
  return to_bytes(std::move(message));
}

}  // namespace pv2::remote
