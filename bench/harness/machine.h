// SPDX-License-Identifier: Apache-2.0
//
// What the operating system reports about this process and the rest of the machine: processor time,
// memory, bytes written. Linux only, read from /proc; a value that cannot be read is 0.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
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

/// What two processors are worth now: twice the time of a loop that keeps a core busy, over the
/// time that two threads take for one such loop each, on two processors. 2 is the most, apart from
/// noise. Two virtual processors may be two threads of one core of the host, or share it with other
/// guests: then it is 1. That changes from minute to minute, and nothing in /proc tells. Of a few
/// tries of some 5 ms the best counts, because what disturbs for a moment is in /proc. 1 if the
/// process may run on one processor only. Nothing else of this process runs meanwhile.
double two_processors_worth();

/// The time in ns in which a line of a cache goes to another processor and back. Where the host
/// puts two virtual processors decides it: about 115 if they share a cache, 440 if they do not.
/// What threads pass to each other costs that much. 0 if the process may run on one processor only.
double line_round_trip_ns();

/// What the cache is worth that this processor shares with others, also with those of other guests
/// of the host: ns per load from `bytes` in random order, each load after the one before; the
/// median of a few tries, each with memory of its own.
double random_load_ns(std::size_t bytes);

/// Begins to count the lines of memory that move between the caches of threads, if this is a build
/// that does (bench/line_moves.sh). The end returns how many have moved.
#if defined(PV2_COUNT_LINE_MOVES)
inline constexpr bool kCountsLineMoves = true;
extern "C" void pv2_begin_line_moves();
extern "C" std::uint64_t pv2_end_line_moves();
inline void begin_line_moves() { pv2_begin_line_moves(); }
inline std::uint64_t end_line_moves() { return pv2_end_line_moves(); }
#else
inline constexpr bool kCountsLineMoves = false;
inline void begin_line_moves() {}
inline std::uint64_t end_line_moves() { return 0; }
#endif

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
