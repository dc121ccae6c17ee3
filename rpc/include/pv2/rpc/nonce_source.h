// SPDX-License-Identifier: Apache-2.0
//
// NonceSource: makes the nonces of one client.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/mutex.h>

#include <cstdint>

namespace pv2 {

/// Gives nonces that nobody else gives: a random group of 64 bits from the operating system, and a
/// counter in it that begins at a random place. After a fork() the child has a group of its own.
/// Two sources have the same group with a probability of 2^-64 for each pair, and would then also
/// have to meet in the counter. Thread-safe.
class NonceSource {
 public:
  NonceSource();

  /// Never the same twice, and never the value 0.
  [[nodiscard]] Nonce next();

 private:
  void begin_anew() PV2_REQUIRES(next_mutex_);

  Mutex next_mutex_;
  std::uint64_t forks_ PV2_GUARDED_BY(next_mutex_) = 0;
  Nonce last_ PV2_GUARDED_BY(next_mutex_);
};

}  // namespace pv2
