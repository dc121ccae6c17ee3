// SPDX-License-Identifier: Apache-2.0
//
// Inbox: the messages to one procedure from outside. Few procedures ever have one. Each message is
// durable in a row of its own, so a sender never writes a record that a step may be writing too.
//
// The order of numbers is the order of delivery. A row is deleted in the batch of the step that
// consumes it, or after the tree has ended.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/looks.h"

namespace pv2 {

/// One message, as its row says it.
struct InboxMessage {
  /// The numbers are persisted.
  enum class Kind : std::uint8_t {
    kAbort = 1,   ///< To a root: its tree is undone. `payload` is the reason.
    kSignal = 2,  ///< For a step that asks for `name`.
  };
  Kind kind = Kind::kAbort;
  std::uint64_t number = 0;  ///< Unique within the procedure, increasing.
  WallTime at{};
  std::string who;
  std::string name;
  std::string payload;
  /// It is for a procedure that is being undone. The procedure's record may still say SUCCESS.
  bool to_undo = false;
  bool late = false;  ///< After a restart: durable after its procedure's success. Not in the row.
  CommitSequence sequence;  ///< Of the batch that wrote the row; not in the row.
};

/// A step that was given `known` signals called `name` waits for another one.
struct SignalWish {
  std::string name;
  std::size_t known = 0;
};

/// How the step of a record has used the inbox.
struct InboxUse {
  /// What a step was given of one name.
  struct OfName {
    std::size_t count = 0;
    std::uint64_t last = 0;  ///< The number of the last one.
  };
  std::vector<std::uint64_t> given;  ///< Numbers of the signals that the step got.
  std::map<std::string, OfName, std::less<>> given_by_name;
  std::vector<SignalWish> wanted;  ///< The signals that it asked for and that were not there.
};

/// Guarded by the state mutex. Messages keep their addresses until they are consumed.
struct Inbox {
  std::uint64_t next_number = 1;
  std::vector<std::unique_ptr<InboxMessage>> messages;  ///< Durable ones, in order of number.

  const InboxMessage* aborted_by = nullptr;  ///< One of `messages`, which stays; see abort().

  /// What the last published record of the procedure waits for.
  std::vector<SignalWish> wanted;
  // Of signals that are accepted and not consumed, whether on the way or durable.
  std::size_t signals = 0;
  std::size_t signal_bytes = 0;

  [[nodiscard]] std::size_t count(std::string_view name) const noexcept {
    std::size_t found = 0;
    for (const auto& message : messages) {
      Looks::one();
      found += message->kind == InboxMessage::Kind::kSignal && message->name == name ? 1 : 0;
    }
    return found;
  }
  /// Whether a signal called `name` is there that a wish in `wanted` is for.
  [[nodiscard]] bool wants(std::string_view name) const noexcept {
    for (const SignalWish& wish : wanted) {
      if (wish.name == name) return count(name) > wish.known;
    }
    return false;
  }
  /// Whether a signal in `wanted` is there. With many wishes, the messages are counted once.
  [[nodiscard]] bool has_wanted() const {
    constexpr std::size_t kFew = 4;
    if (wanted.empty() || messages.empty()) return false;
    if (wanted.size() <= kFew) {
      return std::any_of(wanted.begin(), wanted.end(),
                         [this](const SignalWish& wish) { return count(wish.name) > wish.known; });
    }
    std::unordered_map<std::string_view, std::size_t> counts;
    for (const auto& message : messages) {
      Looks::one();
      if (message->kind == InboxMessage::Kind::kSignal) ++counts[message->name];
    }
    return std::any_of(wanted.begin(), wanted.end(), [&](const SignalWish& wish) {
      const auto found = counts.find(wish.name);
      return found != counts.end() && found->second > wish.known;
    });
  }
  /// Counts a signal when it is accepted.
  void reserve(const InboxMessage& message) noexcept {
    ++signals;
    signal_bytes += size_of(message);
  }
  /// The first message called `name` whose number is greater than `last`; nullptr: there is none.
  [[nodiscard]] const InboxMessage* next(std::string_view name, std::uint64_t last) const noexcept {
    const auto is_before = [](std::uint64_t number, const auto& message) {
      return number < message->number;
    };
    auto at = std::upper_bound(messages.begin(), messages.end(), last, is_before);
    for (; at != messages.end(); ++at) {
      Looks::one();
      if ((*at)->kind == InboxMessage::Kind::kSignal && (*at)->name == name) return at->get();
    }
    return nullptr;
  }
  /// Consumes all signals for which `ends` returns true, in one pass.
  template <class Ends>
  void consume_if(Ends&& ends) {
    std::erase_if(messages, [&](const std::unique_ptr<InboxMessage>& message) {
      Looks::one();
      if (!ends(*message)) return false;
      PV2_ASSERT(message->kind == InboxMessage::Kind::kSignal, "only signals are consumed");
      PV2_ASSERT(signals != 0 && signal_bytes >= size_of(*message),
                 "a signal that is consumed was counted");
      --signals;
      signal_bytes -= size_of(*message);
      return true;
    });
  }
  static std::size_t size_of(const InboxMessage& message) noexcept {
    return message.name.size() + message.payload.size();
  }

  /// The message that aborted the tree, or nullptr. At most one is ever published.
  [[nodiscard]] const InboxMessage* abort() const noexcept { return aborted_by; }
  /// Adds a durable message, in order of numbers, and returns it.
  const InboxMessage& add(std::unique_ptr<InboxMessage> message) {
    PV2_ASSERT(message != nullptr, "a message that is added is not null");
    if (message->number >= next_number) next_number = message->number + 1;
    if (message->kind == InboxMessage::Kind::kAbort) aborted_by = message.get();
    auto at = messages.end();
    while (at != messages.begin() && (*(at - 1))->number > message->number) --at;
    return **messages.insert(at, std::move(message));
  }
};

/// The failure of a tree that the message `abort` aborted.
[[nodiscard]] inline Status error_of(const InboxMessage& abort) {
  std::string text = "aborted";
  if (!abort.who.empty()) text += " by " + abort.who;
  if (!abort.payload.empty()) text += ": " + abort.payload;
  return Status(StatusCode::kAborted, std::move(text));
}

}  // namespace pv2
