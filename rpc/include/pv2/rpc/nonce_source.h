// SPDX-License-Identifier: Apache-2.0
//
// NonceSource: makes the nonces of one client.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/mutex.h>

#include <atomic>
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
  void begin_anew();

  // The mutex guards beginning anew, which happens once in a process: so no thread can hold it when
  // another one forks, unless that is its first call after a fork.
  Mutex group_mutex_;
  // Stored with release after the other two; whoever sees it sees them.
  std::atomic<std::uint64_t> forks_{UINT64_MAX};
  std::atomic<std::uint64_t> group_{0};
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace pv2
