// SPDX-License-Identifier: Apache-2.0
//
// Reply: whom the engine owes an answer, and where that is given. Effects::reply() gives it, once,
// after the state mutex was released.

#pragma once

#include <cstdint>
#include <functional>

namespace pv2 {

/// Where an answer is given.
enum class ReplyOn : std::uint8_t {
  kPool,  ///< The host's code, which may take its time.
  kHere,  ///< Engine code (a latch): on the thread that knows the answer.
};

/// Owned by one thread at a time. Without `tell` nobody is told.
template <class T>
struct Reply {
  std::function<void(T)> tell{};
  ReplyOn on = ReplyOn::kPool;

  explicit operator bool() const noexcept { return tell != nullptr; }
};

}  // namespace pv2
