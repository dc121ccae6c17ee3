// SPDX-License-Identifier: Apache-2.0
//
// RetentionPolicy: how long results are kept. A part of ExecutorOptions.

#pragma once

#include <pv2/base/clock.h>

#include <cstddef>

namespace pv2 {

/// How long the result of a root is kept, and how many results and bytes are kept at most. Nothing
/// is forgotten early: at a limit new submissions with a nonce are refused (kResourceExhausted).
struct RetentionPolicy {
  /// A result is kept this long after the end of its root, or until it is acknowledged. Then it and
  /// its nonce are forgotten, and the same submission would run again: a nonce promises "at most
  /// once" for this long. Measured by the monotonic clock while executors run; time in which none
  /// ran counts once the wall clock is beyond doubt (docs/crash-safety.md), so it may be longer,
  /// never shorter. 0: kept until acknowledged. Otherwise at least 30 minutes, longer than any
  /// client retries.
  Duration ttl{};
  /// How many submissions with a nonce may, at once, be live or have a result that is kept. 0: any
  /// number. Those that steps submit count, but are not refused.
  std::size_t max_keyed_results = 0;
  /// About how many bytes kept results may take. The results of procedures that are live when this
  /// is reached come on top. 0: any number.
  std::size_t max_bytes = 0;
};

}  // namespace pv2
