// SPDX-License-Identifier: Apache-2.0
//
// OneFailure: one request for memory that fails. Only engine_tests and idempotency_tests have the
// operator new that asks it (tests/engine/core/live_table_no_memory_test.cc and
// tests/idempotency/verdict_no_memory_test.cc).

#pragma once

#include <cstdint>

namespace pv2::testing {

/// While it lives, this thread gets no memory once: after `blocks` requests to operator new that
/// succeed.
class OneFailure {
 public:
  explicit OneFailure(std::int64_t blocks) noexcept { left = blocks; }
  OneFailure(const OneFailure&) = delete;
  OneFailure& operator=(const OneFailure&) = delete;
  ~OneFailure() { end(); }

  /// From here on no request fails any more.
  static void end() noexcept { left = kNever; }
  /// Whether the request that this thread makes now is the one that fails.
  static bool is_now() noexcept { return left >= 0 && left-- == 0; }
  [[nodiscard]] static bool has_happened() noexcept { return left == kHappened; }

 private:
  static constexpr std::int64_t kHappened = -1;
  static constexpr std::int64_t kNever = -2;
  static inline constinit thread_local std::int64_t left = kNever;
};

}  // namespace pv2::testing
