// SPDX-License-Identifier: Apache-2.0
//
// The timer queue with a number of timers armed: move one, cancel and arm one, let the earliest
// fire and arm it again.

#include <benchmark/benchmark.h>
#include <pv2/base/random.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "timer_queue.h"

namespace {

using std::chrono::microseconds;

/// A queue full of timers within an hour.
struct Armed {
  explicit Armed(std::int64_t size)
      : executions(std::make_unique<pv2::Execution[]>(static_cast<std::size_t>(size))),
        size(static_cast<std::uint64_t>(size)) {
    for (std::uint64_t i = 0; i < this->size; ++i) queue.arm(executions[i], some_time());
  }
  ~Armed() {
    for (std::uint64_t i = 0; i < size; ++i) queue.cancel(executions[i]);
  }
  pv2::SteadyTime some_time() { return pv2::SteadyTime(microseconds(random.below(3'600'000'000))); }
  pv2::Execution& some() { return executions[random.below(size)]; }

  pv2::Random random{1};
  std::unique_ptr<pv2::Execution[]> executions;
  std::uint64_t size;
  pv2::TimerQueue queue;
};

void move(benchmark::State& state) {
  Armed armed(state.range(0));
  for (auto _ : state) armed.queue.arm(armed.some(), armed.some_time());
}

void cancel_and_arm(benchmark::State& state) {
  Armed armed(state.range(0));
  for (auto _ : state) {
    pv2::Execution& execution = armed.some();
    armed.queue.cancel(execution);
    armed.queue.arm(execution, armed.some_time());
  }
}

void fire_and_arm(benchmark::State& state) {
  Armed armed(state.range(0));
  for (auto _ : state) {
    pv2::Execution* const due = armed.queue.pop_due(pv2::SteadyTime::max());
    armed.queue.arm(*due, armed.some_time());
  }
}

BENCHMARK(move)->Arg(1'000)->Arg(200'000);
BENCHMARK(cancel_and_arm)->Arg(1'000)->Arg(200'000);
BENCHMARK(fire_and_arm)->Arg(1'000)->Arg(200'000);

}  // namespace
