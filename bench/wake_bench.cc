// SPDX-License-Identifier: Apache-2.0
//
// wake_bench: the time from the moment at which another thread completes what a procedure waits for
// to the beginning of the procedure's next step. One procedure waits again and again in an engine
// that has nothing else to do. Its worker is asleep each time, and the caller keeps its processor,
// so the worker has to be woken on another one: the slow case. On Noop and on LevelDB; the wake
// itself needs no record.
//
//     wake_bench [--quick] ...

#include <fmt/format.h>
#include <pv2/base/mutex.h>
#include <pv2/engine/procedure_registry.h>
#include <pv2/engine/state_machine_procedure.h>
#include <pv2/store/leveldb_procedure_store.h>
#include <pv2/store/noop_procedure_store.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "harness/engine.h"
#include "harness/machine.h"
#include "harness/options.h"
#include "harness/rounds.h"
#include "harness/samples.h"
#include "harness/work_folder.h"

namespace pv2::bench {
namespace {

// Long enough that the wait is published, the worker asleep and its processor idle.
constexpr std::chrono::microseconds kPause{500};

// Longer than it takes to wake a thread elsewhere.
constexpr std::chrono::microseconds kCallerStaysBusy{100};

using Moment = BenchClock::time_point;

/// The procedure leaves its Completion and its measurements here, and the caller finds both.
/// Thread-safe.
class Board {
 public:
  void put(Completion<Moment> completion) {
    MutexLock lock(board_mutex_);
    completion_.emplace(std::move(completion));
    put_.notify_one();
  }
  Completion<Moment> take() {
    MutexLock lock(board_mutex_);
    while (!completion_) put_.wait(board_mutex_);
    Completion<Moment> taken = *std::move(completion_);
    completion_.reset();
    return taken;
  }
  void arrived(Moment called) {
    const std::chrono::duration<double, std::micro> took = BenchClock::now() - called;
    MutexLock lock(board_mutex_);
    samples_.add(took.count());
  }
  Samples take_samples() {
    MutexLock lock(board_mutex_);
    return std::move(samples_);
  }
  void finish() { finished_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool finished() const { return finished_.load(std::memory_order_relaxed); }

 private:
  Mutex board_mutex_;
  CondVar put_;
  std::optional<Completion<Moment>> completion_ PV2_GUARDED_BY(board_mutex_);
  Samples samples_ PV2_GUARDED_BY(board_mutex_);
  std::atomic<bool> finished_{false};  // relaxed: read at the next wake at the latest
};

enum class Nap { kNap = 1 };

/// Waits for a call, records how long the call took to arrive, and waits again. Threads: as
/// Procedure.
class Sleeper final : public StateMachineProcedure<Nap> {
 public:
  static constexpr std::string_view kType = "bench.Sleeper";
  static constexpr auto kSteps = steps(step(Nap::kNap, "NAP", kNoUndo));
  explicit Sleeper(Board& board) : board_(&board) {}
  void fields(auto& /*f*/) {}

  Flow execute_from_state(Nap /*nap*/, StepContext& ctx) override {
    const Moment* const called = ctx.await<Moment>(
        [this](Completion<Moment> completion) { board_->put(std::move(completion)); });
    if (called == nullptr) return wait();
    board_->arrived(*called);
    if (board_->finished()) return done();
    return again();
  }

 private:
  Board* board_;
};

Round measure(std::unique_ptr<ProcedureStore> store, unsigned wakes) {
  Board board;
  ProcedureRegistry registry;
  registry.add<Sleeper>(board);
  const auto executor = open_engine(std::move(store), std::move(registry));
  const auto submitted = must(executor->submit(Sleeper(board)), "submitting");
  const UsageMeter meter;
  for (unsigned i = 0; i <= wakes; ++i) {
    const Completion<Moment> complete = board.take();
    std::this_thread::sleep_for(kPause);
    if (i == wakes) board.finish();
    const Moment called = BenchClock::now();
    complete(called);
    while (BenchClock::now() - called < kCallerStaysBusy) {
    }
  }
  must(executor->wait(submitted.id), "waiting");
  const Usage usage = meter.stop();
  Samples samples = board.take_samples();
  return {.values = {{"p50_us", samples.percentile(50)}, {"p99_us", samples.percentile(99)}},
          .other_cores = usage.other_cores};
}

void run(const Options& options) {
  WorkFolder folder(options.data);
  const unsigned wakes = options.quick ? 300 : 1000;
  Rounds on_noop;
  Rounds on_leveldb;
  for (unsigned i = 0; i < options.runs; ++i) {
    progress(fmt::format("wakes, round {} of {}", i + 1, options.runs));
    on_noop.add(measure(noop(), wakes));
    const std::string path = folder.fresh("store");
    on_leveldb.add(measure(leveldb(path), wakes));
    folder.remove(path);
  }
  for (const auto& [store, rounds] :
       {std::pair("noop", &on_noop), std::pair("leveldb", &on_leveldb)}) {
    ResultRow row("wake");
    row.set("in_flight", 1).set("workers", 1).set("store", store).set("wakes_per_run", wakes);
    rounds->fill(row, "p50_us");
    row.print();
  }
}

}  // namespace
}  // namespace pv2::bench

int main(int argc, char** argv) {
  using namespace pv2::bench;
  run(parse_options(argc, argv, "wake_bench"));
}
