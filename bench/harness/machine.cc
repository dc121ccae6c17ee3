// SPDX-License-Identifier: Apache-2.0
//
// Reads the numbers from small files of /proc.

#include "harness/machine.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

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
