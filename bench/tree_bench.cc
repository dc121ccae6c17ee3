// SPDX-License-Identifier: Apache-2.0
//
// tree_bench: what being a member of a tree costs. One parent spawns 10 000 FiveSteps in one step;
// their steps per second, from the submission of the parent to its result, are compared with those
// of 10 000 independent FiveSteps, from the first submission to the last result. Both run on
// LevelDB, neither is acknowledged. Children have no nonce; the independent procedures have one,
// like every submission here.
//
//     tree_bench [--quick] ...

#include <fmt/format.h>
#include <pv2/engine/async_executor.h>
#include <pv2/engine/procedure_registry.h>
#include <pv2/store/leveldb_procedure_store.h>

#include <atomic>
#include <memory>
#include <vector>

#include "harness/engine.h"
#include "harness/five_steps.h"
#include "harness/machine.h"
#include "harness/options.h"
#include "harness/raw_sync.h"
#include "harness/rounds.h"
#include "harness/work_folder.h"

namespace pv2::bench {
namespace {

constexpr std::uint64_t kChildren = 10'000;

enum class FamilyStage { kSpawn = 1 };

/// Threads: as Procedure.
class Family final : public StateMachineProcedure<FamilyStage> {
 public:
  static constexpr std::string_view kType = "bench.Family";
  static constexpr auto kSteps = steps(step(FamilyStage::kSpawn, "SPAWN", kUndoable));

  explicit Family(const UserWork& work) : work_(&work) {}
  void fields(auto& /*f*/) {}

  Flow execute_from_state(FamilyStage /*stage*/, StepContext& ctx) override {
    for (std::uint64_t i = 1; i <= kChildren; ++i) ctx.spawn(FiveSteps(*work_, i));
    return done();
  }

 private:
  const UserWork* work_;
};

class TreeBench {
 public:
  explicit TreeBench(Options options)
      : options_(std::move(options)), folder_(options_.data), raw_(folder_.fresh("raw-sync")) {}

  void run() {
    for (unsigned i = 0; i < options_.runs; ++i) {
      progress(fmt::format("a tree, round {} of {}", i + 1, options_.runs));
      const RawSyncs raw = raw_.measure(options_.raw_window);
      const Measured tree = measure([](auto& executor) { run_tree(executor); });
      const Measured independent = measure([](auto& executor) { run_independent(executor); });
      rounds_.add({.values = {{"steps_per_s", tree.steps_per_s},
                              {"independent_steps_per_s", independent.steps_per_s},
                              {"tree_over_independent", tree.steps_per_s / independent.steps_per_s},
                              {"cpu_us_per_step", tree.cpu_us_per_step},
                              {"independent_cpu_us_per_step", independent.cpu_us_per_step},
                              {"raw_syncs_per_s", raw.per_second},
                              {"ratio", tree.steps_per_s / raw.per_second}},
                   .other_cores = std::max(tree.other_cores, independent.other_cores)});
    }
    ResultRow row("tree");
    row.set("in_flight", static_cast<double>(kChildren)).set("workers", 1).set("store", "leveldb");
    rounds_.fill(row, "tree_over_independent");
    row.print();
  }

 private:
  struct Measured {
    double steps_per_s = 0;
    double cpu_us_per_step = 0;
    double other_cores = 0;
  };

  template <class Work>
  Measured measure(Work work) {
    const std::string path = folder_.fresh("store");
    ProcedureRegistry registry;
    registry.add<FiveSteps>(no_work_).add<Family>(no_work_);
    const auto executor = open_engine(leveldb(path), std::move(registry));
    const UsageMeter meter;
    work(*executor);
    const Usage usage = meter.stop();
    executor->stop();
    folder_.remove(path);
    const double steps = static_cast<double>(kChildren * kStepsPerProcedure);
    return {steps / usage.seconds, usage.cpu_seconds / steps * 1e6, usage.other_cores};
  }

  static void run_tree(ProcedureExecutor& executor) {
    const auto submitted = must(executor.submit(Family(no_work_), {.nonce = {2, 1}}), "submitting");
    must(must(executor.wait(submitted.id), "waiting").status, "running");
  }

  static void run_independent(ProcedureExecutor& executor) {
    std::atomic<std::uint64_t> left = kChildren;
    const auto ended = [&left](const Result<ProcedureResult>& result) {
      must(result.status(), "waiting");
      must(result->status, "running");
      if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) left.notify_all();
    };
    for (std::uint64_t i = 1; i <= kChildren; ++i) {
      executor.async().submit(FiveSteps(no_work_, i), {.nonce = {1, i}},
                              [&executor, &ended](const Result<Submitted>& answer) {
                                must(answer.status(), "submitting");
                                executor.async().wait(answer->id, ended);
                              });
    }
    for (std::uint64_t now = left.load(); now != 0; now = left.load()) left.wait(now);
  }

  static inline const UserWork no_work_;

  const Options options_;
  WorkFolder folder_;
  RawSync raw_;
  Rounds rounds_;
};

}  // namespace
}  // namespace pv2::bench

int main(int argc, char** argv) {
  using namespace pv2::bench;
  TreeBench(parse_options(argc, argv, "tree_bench")).run();
}
