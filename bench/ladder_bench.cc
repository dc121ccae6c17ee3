// SPDX-License-Identifier: Apache-2.0
//
// ladder_bench: what very many of something cost each other, and what they cost a procedure that
// has nothing to do with them. With the Noop store, the master scheduler, 2 workers and 16, which
// are more than the processors:
//
//     procedures    that are submitted at once, each with a lock of its own
//     children      of one parent, which spawns 1000 of them in each step
//     lock          procedures that want the same lock: one after the other has it
//     waiters       callers who wait for the result of one procedure
//
// With 1 000, 10 000 and 100 000 of each. `us_per_piece` stays the same if none of them costs the
// others anything. `probe_p50_us` and `probe_p99_us`: the times of procedures, one at a time, which
// another thread executes meanwhile. The program ends with an error if a procedure is lost.
//
//     ladder_bench [--size=1000|10000|100000] [--workers=2|16] [--quick] ...

#include <fmt/format.h>
#include <pv2/base/mutex.h>
#include <pv2/engine/async_executor.h>
#include <pv2/engine/procedure_registry.h>
#include <pv2/engine/state_machine_procedure.h>
#include <pv2/store/noop_procedure_store.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <tuple>

#include "harness/engine.h"
#include "harness/five_steps.h"
#include "harness/machine.h"
#include "harness/options.h"
#include "harness/rounds.h"
#include "harness/samples.h"
#include "harness/work_folder.h"

namespace pv2::bench {
namespace {

constexpr std::array<std::uint64_t, 3> kSizes{1'000, 10'000, 100'000};
constexpr std::array<unsigned, 2> kWorkers{2, 16};
constexpr std::uint64_t kSpawnedAtOnce = 1'000;
// Tables from here on are the probes'.
constexpr std::uint64_t kProbes = 1'000'000;

const UserWork no_work;

/// Counts down to 0, and lets one thread wait for that. Thread-safe.
class Left {
 public:
  explicit Left(std::uint64_t count) : left_(count) {}
  void one_less() {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_all();
  }
  void wait_for_none() const {
    for (std::uint64_t now = left_.load(); now != 0; now = left_.load()) left_.wait(now);
  }

 private:
  std::atomic<std::uint64_t> left_;
};

enum class FamilyStage { kSpawn = 1 };

/// Spawns its children, kSpawnedAtOnce in each step. Threads: as Procedure.
class LargeFamily final : public StateMachineProcedure<FamilyStage> {
 public:
  static constexpr std::string_view kType = "bench.LargeFamily";
  static constexpr auto kSteps = steps(step(FamilyStage::kSpawn, "SPAWN", kUndoable));

  explicit LargeFamily(std::uint64_t children = 0) : left_(children) {}
  void fields(auto& f) { f(1, "left", left_); }

  Flow execute_from_state(FamilyStage /*stage*/, StepContext& ctx) override {
    if (left_ == 0) return done();
    const std::uint64_t now = std::min(left_, kSpawnedAtOnce);
    for (std::uint64_t i = 0; i < now; ++i) ctx.spawn(FiveSteps(no_work, left_ - i));
    left_ -= now;
    return next(FamilyStage::kSpawn);
  }

 private:
  std::uint64_t left_;
};

/// Ends when the event is set. Threads: as Procedure.
class Gate final : public StateMachineProcedure<FamilyStage> {
 public:
  static constexpr std::string_view kType = "bench.Gate";
  static constexpr auto kSteps = steps(step(FamilyStage::kSpawn, "WAIT", kNoUndo));

  void fields(auto& /*f*/) {}
  Flow execute_from_state(FamilyStage /*stage*/, StepContext& ctx) override {
    return ctx.signal("open") != nullptr ? done() : wait();
  }
};

void must_succeed(const Result<ProcedureResult>& result) {
  must(result.status(), "waiting");
  must(result->status, "running");
}

void run_procedures(ProcedureExecutor& executor, CallbackThread callbacks, std::uint64_t size,
                    const std::function<std::uint64_t(std::uint64_t)>& table_of) {
  Left left(size);
  for (std::uint64_t i = 1; i <= size; ++i) {
    executor.async(callbacks).execute(FiveSteps(no_work, table_of(i)), {.nonce = {1, i}},
                                      [&left](const Result<ProcedureResult>& result) {
                                        must_succeed(result);
                                        left.one_less();
                                      });
  }
  left.wait_for_none();
}

void run_family(ProcedureExecutor& executor, std::uint64_t size) {
  must_succeed(executor.execute(LargeFamily(size), {.nonce = {2, 1}}));
}

void run_waiters(ProcedureExecutor& executor, CallbackThread callbacks, std::uint64_t size) {
  const auto gate = must(executor.submit(Gate(), {.nonce = {2, 1}}), "submitting");
  Left left(size);
  for (std::uint64_t i = 1; i <= size; ++i) {
    executor.async(callbacks).wait(gate.id, [&left](const Result<ProcedureResult>& result) {
      must_succeed(result);
      left.one_less();
    });
  }
  must(executor.signal(gate.id, "open"), "signalling");
  left.wait_for_none();
}

/// Executes procedures, one at a time, until it is destroyed.
class Probe {
 public:
  explicit Probe(ProcedureExecutor& executor) : thread_([this, &executor] { run(executor); }) {}
  ~Probe() {
    if (thread_.joinable()) (void)stop();
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  /// The times that they took, in us.
  Samples stop() {
    stopping_.store(true, std::memory_order_relaxed);
    thread_.join();
    return std::move(samples_);
  }

 private:
  void run(ProcedureExecutor& executor) {
    std::uint64_t number = 0;
    do {  // at least one
      ++number;
      const auto began = BenchClock::now();
      must_succeed(executor.execute(FiveSteps(no_work, kProbes + number), {.nonce = {3, number}}));
      const std::chrono::duration<double, std::micro> took = BenchClock::now() - began;
      samples_.add(took.count());
    } while (!stopping_.load(std::memory_order_relaxed));
  }

  std::atomic<bool> stopping_{false};  // relaxed: one probe more or less does not matter
  Samples samples_;                    // the thread's, until it is joined
  std::thread thread_;
};

class Ladders {
 public:
  Ladders(Options options, std::optional<std::uint64_t> size, std::optional<unsigned> workers)
      : options_(std::move(options)), size_(size), workers_(workers) {}

  void run() {
    for (unsigned round = 0; round < options_.runs; ++round) {
      progress(fmt::format("ladders, round {} of {}", round + 1, options_.runs));
      for (const unsigned workers : kWorkers) {
        if (workers_.value_or(workers) != workers) continue;
        for (const std::uint64_t size : kSizes) {
          if (size_.value_or(size) == size) climb(workers, size);
        }
      }
    }
    for (const auto& [key, rounds] : rounds_) {
      const auto& [kind, workers, size] = key;
      ResultRow row("ladder");
      row.set("kind", kind).set("store", "noop").set("scheduler", "master");
      row.set("workers", workers).set("in_flight", static_cast<double>(size));
      rounds.fill(row, "us_per_piece");
      row.print();
    }
  }

 private:
  void climb(unsigned workers, std::uint64_t size) {
    const auto own = [](std::uint64_t number) { return number; };
    const auto same = [](std::uint64_t /*number*/) { return std::uint64_t{1}; };
    measure("procedures", workers, size, [&](ProcedureExecutor& executor) {
      run_procedures(executor, options_.callbacks, size, own);
    });
    measure("children", workers, size,
            [&](ProcedureExecutor& executor) { run_family(executor, size); });
    measure("lock", workers, size, [&](ProcedureExecutor& executor) {
      run_procedures(executor, options_.callbacks, size, same);
    });
    measure("waiters", workers, size,
            [&](ProcedureExecutor& executor) { run_waiters(executor, options_.callbacks, size); });
  }

  template <class Work>
  void measure(const char* kind, unsigned workers, std::uint64_t size, Work work) {
    ProcedureRegistry registry;
    registry.add<FiveSteps>(no_work).add<LargeFamily>().add<Gate>();
    const auto executor = open_engine(noop(), std::move(registry), {.workers = workers});
    const UsageMeter meter;
    Probe probe(*executor);
    work(*executor);
    const Usage usage = meter.stop();
    Samples samples = probe.stop();
    rounds_[{kind, workers, size}].add(
        {.values = {{"us_per_piece", usage.seconds / static_cast<double>(size) * 1e6},
                    {"probe_p50_us", samples.percentile(50)},
                    {"probe_p99_us", samples.percentile(99)},
                    {"probe_most_us", samples.percentile(100)}},
         .other_cores = usage.other_cores});
  }

  const Options options_;
  const std::optional<std::uint64_t> size_;
  const std::optional<unsigned> workers_;
  std::map<std::tuple<std::string_view, unsigned, std::uint64_t>, Rounds> rounds_;
};

}  // namespace
}  // namespace pv2::bench

int main(int argc, char** argv) {
  using namespace pv2::bench;
  std::optional<std::uint64_t> size;
  std::optional<unsigned> workers;
  Options options =
      parse_options(argc, argv, "ladder_bench [--size=1000|10000|100000] [--workers=2|16]",
                    [&](std::string_view name, std::string_view value) {
                      if (name == "--size") size = number_in(value);
                      if (name == "--workers") workers = static_cast<unsigned>(number_in(value));
                      return name == "--size" || name == "--workers";
                    });
  Ladders(std::move(options), size, workers).run();
}
