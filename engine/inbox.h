// SPDX-License-Identifier: Apache-2.0
//
// Inbox: what came to one procedure from outside and is durable in rows of its own, in the order of
// their numbers. Few procedures ever have one. Each message is a row beside the procedure's header
// and state, so that sending it never writes a record that a step may be writing too.
//
// The order of numbers is the order of delivery. A row is deleted in the batch of the step that
// consumes it, or after the tree has ended.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace pv2 {

/// One message, as its row says it.
struct InboxMessage {
  /// The numbers are persisted.
  enum class Kind : std::uint8_t {
    kAbort = 1,  ///< To a root: its tree is undone. `payload` is the reason.
  };
  Kind kind = Kind::kAbort;
  std::uint64_t number = 0;  ///< Unique within the procedure, increasing.
  WallTime at{};
  std::string who;
  std::string payload;
  CommitSequence sequence;  ///< Of the batch that wrote the row; not in the row.
};

/// Guarded by the state mutex. Messages keep their addresses until they are consumed.
struct Inbox {
  std::uint64_t next_number = 1;
  std::vector<std::unique_ptr<InboxMessage>> messages;  ///< Durable ones, by number.

  /// The message that aborted the tree, or nullptr. At most one is ever published.
  [[nodiscard]] const InboxMessage* abort() const noexcept {
    for (const auto& message : messages) {
      if (message->kind == InboxMessage::Kind::kAbort) return message.get();
    }
    return nullptr;
  }
  /// Keeps `message` in its place.
  void add(std::unique_ptr<InboxMessage> message) {
    if (message->number >= next_number) next_number = message->number + 1;
    auto at = messages.end();
    while (at != messages.begin() && (*(at - 1))->number > message->number) --at;
    messages.insert(at, std::move(message));
  }
};

}  // namespace pv2
