// SPDX-License-Identifier: Apache-2.0
//
// The queues of both schedulers: entries that hold their locks return to the front, as a procedure
// does from step to step, or begin at the back; they are taken in runs of 16. Measured for several
// numbers of tables in the queues.

#include <benchmark/benchmark.h>
#include <pv2/base/clock.h>
#include <pv2/scheduler/master_procedure_scheduler.h>
#include <pv2/scheduler/simple_procedure_scheduler.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using pv2::Disposition;
using pv2::EntryList;
using pv2::SchedulerEntry;

class Operation final : public SchedulerEntry {};

constexpr std::size_t kRun = 16;

template <class Scheduler>
void poll_and_settle(benchmark::State& state, Disposition disposition) {
  const pv2::SystemClock clock;
  Scheduler scheduler(clock);
  std::vector<Operation> operations(static_cast<std::size_t>(state.range(0)));
  EntryList all;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    operations[i].id = pv2::ProcedureId{i + 1};
    operations[i].locks.table("bench", std::to_string(i), pv2::LockMode::kExclusive);
    all.push_back(operations[i], Disposition::kBack);
  }
  scheduler.settle(std::move(all));
  std::array<SchedulerEntry*, kRun> run{};
  std::int64_t turns = 0;
  for (auto _ : state) {
    const std::size_t taken = scheduler.poll(run, std::chrono::milliseconds(0));
    EntryList batch;
    for (std::size_t i = 0; i < taken; ++i) batch.push_back(*run[i], disposition);
    scheduler.settle(std::move(batch));
    turns += static_cast<std::int64_t>(taken);
  }
  state.SetItemsProcessed(turns);
  EntryList end;
  for (Operation& operation : operations) {
    scheduler.withdraw(operation);
    end.push_back(operation, Disposition::kComplete);
  }
  scheduler.settle(std::move(end));
}

void simple_front(benchmark::State& state) {
  poll_and_settle<pv2::SimpleProcedureScheduler>(state, Disposition::kFront);
}
void simple_back(benchmark::State& state) {
  poll_and_settle<pv2::SimpleProcedureScheduler>(state, Disposition::kBack);
}
void master_front(benchmark::State& state) {
  poll_and_settle<pv2::MasterProcedureScheduler>(state, Disposition::kFront);
}
void master_back(benchmark::State& state) {
  poll_and_settle<pv2::MasterProcedureScheduler>(state, Disposition::kBack);
}
BENCHMARK(simple_front)->Arg(16)->Arg(4096);
BENCHMARK(simple_back)->Arg(16)->Arg(4096);
BENCHMARK(master_front)->Arg(16)->Arg(4096);
BENCHMARK(master_back)->Arg(16)->Arg(4096);

}  // namespace
