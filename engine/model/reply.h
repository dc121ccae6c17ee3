// SPDX-License-Identifier: Apache-2.0
//
// Reply: a caller that the engine owes an answer, and the thread that gives the answer. It is given
// once, through Effects::reply(), after the state mutex was released.

#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace pv2 {

/// Calls `callback`, which is the host's, and drops what it throws. The engine makes `values`
/// before, so that only the host's code is under the catch.
template <class Callback, class... Values>
void call_back(Callback&& callback, Values&&... values) noexcept {
  try {
    std::forward<Callback>(callback)(std::forward<Values>(values)...);
  } catch (...) {  // NOLINT(bugprone-empty-catch): promised to the host
  }
}

/// The thread that gives an answer.
enum class ReplyOn : std::uint8_t {
  kPool,    ///< A thread of the pool. For the host's code, which may take long.
  kEngine,  ///< The thread that knows the answer. For the host's code, if the host says so.
  kHere,    ///< The thread that knows the answer. For engine code (a latch).
  /// As kHere, and the caller only waits for the answer: it makes its request durable itself, if
  /// the store's own thread sleeps (Effects::caller_writes).
  kWaitingCaller,
};

/// Owned by one thread at a time. Without `tell` no caller waits for an answer.
template <class T>
struct Reply {
  std::function<void(T)> tell{};
  ReplyOn on = ReplyOn::kPool;

  explicit operator bool() const noexcept { return tell != nullptr; }
};

}  // namespace pv2
