// SPDX-License-Identifier: Apache-2.0
//
// Lock sets: making one, taking and releasing it alone, and handing a contended table from one
// waiter to the next.

#include <benchmark/benchmark.h>
#include <pv2/base/clock.h>
#include <pv2/scheduler/simple_procedure_scheduler.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using pv2::Disposition;
using pv2::EntryList;
using pv2::LockMode;
using pv2::LockSet;
using pv2::SchedulerEntry;

class Operation final : public SchedulerEntry {};

void complete(pv2::ProcedureScheduler& scheduler, SchedulerEntry& entry) {
  EntryList one;
  one.push_back(entry, Disposition::kComplete);
  scheduler.settle(std::move(one));
}

void make_table_set(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(LockSet().table("bench", "a-table", LockMode::kExclusive));
  }
}
BENCHMARK(make_table_set);

void make_region_set(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        LockSet().region("bench", "a-table", "a-region", LockMode::kExclusive));
  }
}
BENCHMARK(make_region_set);

// Takes and releases a set while `range(0)` others hold tables of their own.
void take_and_release(benchmark::State& state, const LockSet& locks) {
  const pv2::SystemClock clock;
  pv2::SimpleProcedureScheduler scheduler(clock);
  std::vector<Operation> others(static_cast<std::size_t>(state.range(0)));
  for (std::size_t i = 0; i < others.size(); ++i) {
    others[i].id = pv2::ProcedureId{i + 2};
    others[i].locks.table("bench", std::to_string(i), LockMode::kExclusive);
    scheduler.admit(others[i]);
  }
  Operation one;
  one.id = pv2::ProcedureId{1};
  one.locks = locks;
  for (auto _ : state) {
    benchmark::DoNotOptimize(scheduler.admit(one));
    complete(scheduler, one);
  }
  for (Operation& other : others) complete(scheduler, other);
}
void take_table(benchmark::State& state) {
  take_and_release(state, LockSet().table("bench", "a-table", LockMode::kExclusive));
}
void take_region(benchmark::State& state) {
  take_and_release(state, LockSet().region("bench", "a-table", "a-region", LockMode::kExclusive));
}
BENCHMARK(take_table)->Arg(0)->Arg(10'000);
BENCHMARK(take_region)->Arg(0)->Arg(10'000);

// The holder ends, the first of `range(0)` waiters runs, and becomes the last waiter again.
void hand_over(benchmark::State& state) {
  const pv2::SystemClock clock;
  pv2::SimpleProcedureScheduler scheduler(clock);
  std::vector<Operation> operations(static_cast<std::size_t>(state.range(0)) + 1);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    operations[i].id = pv2::ProcedureId{i + 1};
    operations[i].locks.table("bench", "a-table", LockMode::kExclusive);
    EntryList one;
    one.push_back(operations[i], Disposition::kBack);
    scheduler.settle(std::move(one));
  }
  SchedulerEntry* holder = nullptr;
  for (auto _ : state) {
    scheduler.poll(std::span(&holder, 1), std::chrono::milliseconds(0));
    EntryList one;
    one.push_back(*holder, Disposition::kBackUnlock);
    scheduler.settle(std::move(one));
  }
  for (Operation& operation : operations) {
    scheduler.withdraw(operation);
    complete(scheduler, operation);
  }
}
BENCHMARK(hand_over)->Arg(1)->Arg(100);

}  // namespace
