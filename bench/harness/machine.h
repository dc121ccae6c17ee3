// SPDX-License-Identifier: Apache-2.0
//
// What the operating system says about this process and about the rest of the machine: processor
// time, memory, bytes written. Linux only, read from /proc; a value that cannot be read is 0.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace pv2::bench {

using BenchClock = std::chrono::steady_clock;

/// What was used between two moments. A value.
struct Usage {
  double seconds = 0;      ///< That passed.
  double cpu_seconds = 0;  ///< Of this process, all threads, user and system.
  /// Of everything else on the machine, the hypervisor's share included, per second. Known to about
  /// 0.02 in a second.
  double other_cores = 0;
  double written_bytes = 0;  ///< Handed to write() and its kin by this process.
  double device_bytes = 0;   ///< Of pages made dirty by it, in whole pages.
};

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
