// SPDX-License-Identifier: Apache-2.0
//
// Reads the numbers from small files of /proc.

#include "harness/machine.h"

#include <fmt/format.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <fstream>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace pv2::bench {
namespace {

// All time except idle and waiting for a disk, in seconds since the machine started. Guests are
// already counted as user time. Time stolen by the hypervisor disturbs like another program does.
double machine_busy_seconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft_irq = 0, steal = 0;
  file >> word >> user >> nice >> system >> idle >> wait >> irq >> soft_irq >> steal;
  return (user + nice + system + irq + soft_irq + steal) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

double process_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double io_counter(std::string_view wanted) {
  std::ifstream file("/proc/self/io");
  std::string name;
  double value = 0;
  while (file >> name >> value) {
    if (name == wanted) return value;
  }
  return 0;
}

}  // namespace

UsageMeter::Numbers UsageMeter::read() {
  return {.at = BenchClock::now(),
          .cpu_seconds = process_cpu_seconds(),
          .machine_busy_seconds = machine_busy_seconds(),
          .written_bytes = io_counter("wchar:"),
          .device_bytes = io_counter("write_bytes:")};
}

double fixed_loop_ns() {
  constexpr int kTries = 5;
  constexpr std::uint64_t kRounds = 20'000'000;
  double best = 1e9;
  for (int i = 0; i < kTries; ++i) {
    const auto begin = BenchClock::now();
    std::uint64_t number = 1;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      number = number * 6364136223846793005ULL + round;
    }
    const std::chrono::duration<double, std::nano> took = BenchClock::now() - begin;
    // The result is used, so that the loop is not left out.
    if (number != 0) best = std::min(best, took.count() / static_cast<double>(kRounds));
  }
  return best;
}

namespace {

// A loop of independent operations, as many as a core does at once. The result is to be used, so
// that the loop is not left out.
std::uint64_t keep_a_core_busy() {
  constexpr std::uint64_t kRounds = 5'000'000;
  std::array<std::uint64_t, 6> numbers{1, 2, 3, 4, 5, 6};
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    numbers[0] = numbers[0] * 3 + round;
    numbers[1] = numbers[1] * 5 + round;
    numbers[2] = (numbers[2] ^ (numbers[2] << 3)) + round;
    numbers[3] = (numbers[3] >> 3) ^ (round * 7);
    numbers[4] += numbers[4] ^ round;
    numbers[5] = numbers[5] * 9 + round;
  }
  return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0});
}

double seconds_since(BenchClock::time_point begin) {
  return std::chrono::duration<double>(BenchClock::now() - begin).count();
}

// The processors on which this process may run.
std::vector<int> own_processors() {
  std::vector<int> own;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return own;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) own.push_back(i);
  }
  return own;
}

void stay_on(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof set, &set);  // if refused, Linux finds a place
}

// A loop on each of `processors`, from when the first one begins until the last one ends.
double seconds_of_loops(std::span<const int> processors) {
  struct Loop {
    BenchClock::time_point begin;
    BenchClock::time_point end;
    std::uint64_t result = 0;
  };
  std::vector<Loop> loops(processors.size());
  std::barrier<> all(static_cast<std::ptrdiff_t>(processors.size()));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < processors.size(); ++i) {
    threads.emplace_back([&all, &loop = loops[i], processor = processors[i]] {
      stay_on(processor);  // two threads that begin together would share one for some ms
      all.arrive_and_wait();
      loop.begin = BenchClock::now();
      loop.result = keep_a_core_busy();
      loop.end = BenchClock::now();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto first = std::min_element(
      loops.begin(), loops.end(), [](const Loop& a, const Loop& b) { return a.begin < b.begin; });
  const auto last = std::max_element(loops.begin(), loops.end(),
                                     [](const Loop& a, const Loop& b) { return a.end < b.end; });
  return std::chrono::duration<double>(last->end - first->begin).count();
}

// In ns for each time that a line goes from `one` to `other` and back.
double pass_line_between(int one, int other) {
  constexpr unsigned kTrips = 20'000;
  alignas(64) std::atomic<unsigned> line = 0;  // odd: the other one is to answer
  std::barrier<> both(2);
  const auto wait_for = [&line](unsigned value) {
    while (line.load(std::memory_order_acquire) != value) {
    }
  };
  double ns = 0;
  std::thread asks([&] {
    stay_on(one);
    both.arrive_and_wait();
    const auto begin = BenchClock::now();
    for (unsigned i = 0; i < kTrips; ++i) {
      line.store(2 * i + 1, std::memory_order_release);
      wait_for(2 * i + 2);
    }
    ns = std::chrono::duration<double, std::nano>(BenchClock::now() - begin).count() / kTrips;
  });
  std::thread answers([&] {
    stay_on(other);
    both.arrive_and_wait();
    for (unsigned i = 0; i < kTrips; ++i) {
      wait_for(2 * i + 1);
      line.store(2 * i + 2, std::memory_order_release);
    }
  });
  asks.join();
  answers.join();
  return ns;
}

}  // namespace

double two_processors_worth() {
  constexpr int kTries = 5;
  const std::vector<int> processors = own_processors();
  if (processors.size() < 2) return 1;
  const auto two = std::span(processors).first(2);
  double one_loop = 1e9;
  double two_loops = 1e9;
  for (int i = 0; i < kTries; ++i) {
    one_loop = std::min(one_loop, seconds_of_loops(two.first(1)));
    two_loops = std::min(two_loops, seconds_of_loops(two));
  }
  return 2 * one_loop / two_loops;
}

double line_round_trip_ns() {
  constexpr int kTries = 3;
  const std::vector<int> processors = own_processors();
  if (processors.size() < 2) return 0;
  double best = 1e9;
  for (int i = 0; i < kTries; ++i) {
    best = std::min(best, pass_line_between(processors[0], processors[1]));
  }
  return best;
}

double random_load_ns(std::size_t bytes) {
  constexpr std::size_t kTries = 3;
  struct alignas(64) Line {
    Line* next = nullptr;
  };
  // They lie at different places, which may collide in the cache differently.
  std::array<std::vector<Line>, kTries> tried;
  std::array<double, kTries> tries{};
  std::mt19937_64 random(20261128);
  std::vector<std::size_t> order(bytes / sizeof(Line));
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = 0; i < kTries; ++i) {
    std::vector<Line>& lines = tried[i];
    lines.resize(order.size());
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t at = 0; at < order.size(); ++at) {
      lines[order[at]].next = &lines[order[(at + 1) % order.size()]];
    }
    const Line* at = &lines[order[0]];
    const auto walk = [&at, loads = lines.size()] {  // once around
      for (std::size_t load = 0; load < loads; ++load) at = at->next;
    };
    walk();
    const auto begin = BenchClock::now();
    walk();
    // The place is used, so that the loads are not left out.
    if (at != nullptr) tries[i] = seconds_since(begin) * 1e9 / static_cast<double>(lines.size());
  }
  std::sort(tries.begin(), tries.end());
  return tries[kTries / 2];
}

UsageMeter::UsageMeter() : begin_(read()) {}

Usage UsageMeter::stop() const {
  const Numbers end = read();
  Usage usage;
  usage.seconds = std::chrono::duration<double>(end.at - begin_.at).count();
  usage.cpu_seconds = end.cpu_seconds - begin_.cpu_seconds;
  const double busy = end.machine_busy_seconds - begin_.machine_busy_seconds;
  usage.other_cores = std::max(0.0, (busy - usage.cpu_seconds) / usage.seconds);
  usage.written_bytes = end.written_bytes - begin_.written_bytes;
  usage.device_bytes = end.device_bytes - begin_.device_bytes;
  return usage;
}

double thread_cpu_seconds(pid_t thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/schedstat", thread));
  double nanoseconds = 0;
  file >> nanoseconds;
  return nanoseconds * 1e-9;
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0;
  double resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

pid_t this_thread() { return gettid(); }

}  // namespace pv2::bench
