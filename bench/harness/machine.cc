// SPDX-License-Identifier: Apache-2.0
//
// Reads the numbers from small files of /proc.

#include "harness/machine.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <fstream>
#include <numeric>
#include <random>
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

// Rounds per second of a loop with independent operations, as many as a core does at once.
double busy_rounds_per_second() {
  constexpr std::uint64_t kRounds = 2'000'000;
  std::array<std::uint64_t, 6> numbers{1, 2, 3, 4, 5, 6};
  const auto begin = BenchClock::now();
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    numbers[0] = numbers[0] * 3 + round;
    numbers[1] = numbers[1] * 5 + round;
    numbers[2] = (numbers[2] ^ (numbers[2] << 3)) + round;
    numbers[3] = (numbers[3] >> 3) ^ (round * 7);
    numbers[4] += numbers[4] ^ round;
    numbers[5] = numbers[5] * 9 + round;
  }
  const std::chrono::duration<double> took = BenchClock::now() - begin;
  // The result is used, so that the loop is not left out.
  const auto sum = std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0});
  return sum == 0 ? 0 : static_cast<double>(kRounds) / took.count();
}

}  // namespace

double processors_worth() {
  constexpr int kTries = 3;
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    const double alone = busy_rounds_per_second();
    std::vector<double> together(processors);
    {
      std::barrier begin(static_cast<std::ptrdiff_t>(processors));
      std::vector<std::jthread> threads;
      for (double& speed : together) {
        threads.emplace_back([&begin, &speed] {
          begin.arrive_and_wait();
          speed = busy_rounds_per_second();
        });
      }
    }
    best = std::max(best, std::accumulate(together.begin(), together.end(), 0.0) / alone);
  }
  return std::min(best, static_cast<double>(processors));
}

double random_load_ns(std::size_t bytes) {
  constexpr std::size_t kTries = 3;
  struct alignas(64) Line {
    Line* next = nullptr;
  };
  std::array<double, kTries> tries{};
  std::mt19937_64 random(20261128);
  for (double& ns : tries) {
    std::vector<Line> lines(bytes / sizeof(Line));
    std::vector<std::size_t> order(lines.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t i = 0; i < order.size(); ++i) {
      lines[order[i]].next = &lines[order[(i + 1) % order.size()]];
    }
    const Line* at = &lines[order[0]];
    const auto walk = [&at, loads = lines.size()] {  // once around
      for (std::size_t i = 0; i < loads; ++i) at = at->next;
    };
    walk();
    const auto begin = BenchClock::now();
    walk();
    const std::chrono::duration<double, std::nano> took = BenchClock::now() - begin;
    // The place is used, so that the loads are not left out.
    if (at != nullptr) ns = took.count() / static_cast<double>(lines.size());
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
