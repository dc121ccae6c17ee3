// SPDX-License-Identifier: Apache-2.0
//
// What the operating system reports about this process and the rest of the machine: processor time,
// memory, bytes written. Linux only, read from /proc; a value that cannot be read is 0.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace pv2::bench {

using BenchClock = std::chrono::steady_clock;

/// What was used between two moments. A value.
struct Usage {
  double seconds = 0;      ///< Between the two moments.
  double cpu_seconds = 0;  ///< Of this process, all threads, user and system.
  /// Cores that the rest of the machine used, the hypervisor's share included. Over one second this
  /// is accurate to about 0.02.
  double other_cores = 0;
  double written_bytes = 0;  ///< Passed to write() and similar calls by this process.
  double device_bytes = 0;   ///< Of pages that this process made dirty, in whole pages.
};

/// What the processor is worth, in ns per round of a fixed loop of dependent multiplications: the
/// best of a few tries of some 30 ms.
double fixed_loop_ns();

/// Measures from construction to each stop(). Owned by one thread.
class UsageMeter {
 public:
  UsageMeter();
  [[nodiscard]] Usage stop() const;

 private:
  struct Numbers {
    BenchClock::time_point at;
    double cpu_seconds = 0;
    double machine_busy_seconds = 0;
    double written_bytes = 0;
    double device_bytes = 0;
  };
  static Numbers read();
  Numbers begin_;
};

/// Processor time of one thread of this process, in seconds.
double thread_cpu_seconds(pid_t thread);

/// Memory of this process that is in use, in bytes.
double resident_bytes();

/// The number of this thread, for thread_cpu_seconds().
pid_t this_thread();

}  // namespace pv2::bench
