// SPDX-License-Identifier: Apache-2.0
//
// Runs one path of the engine a given number of times on this thread, for a tool that counts
// instructions: `instruction_paths PATH COUNT`. Everything is deterministic (no worker threads, a
// manual clock), so two runs with the same arguments execute the same instructions;
// bench/instructions.sh compares the counts with recorded ones.

#include <pv2/engine/async_executor.h>
#include <pv2/engine/executor_options.h>
#include <pv2/engine/inspection.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/engine/state_machine_procedure.h>
#include <pv2/scheduler/simple_procedure_scheduler.h>
#include <pv2/store/memory_procedure_store.h>
#include <pv2/store/noop_procedure_store.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::chrono_literals;
using pv2::kUndoable;

enum class Step { kOne = 1, kTwo = 2, kThree = 3, kFour = 4, kFive = 5 };

// Five steps, 100 B of state and an exclusive lock of its own, as in the other benchmarks.
class FiveSteps final : public pv2::StateMachineProcedure<Step> {
 public:
  static constexpr std::string_view kType = "bench.FiveSteps";
  static constexpr auto kSteps = pv2::steps(
      pv2::step(Step::kOne, "ONE", kUndoable), pv2::step(Step::kTwo, "TWO", kUndoable),
      pv2::step(Step::kThree, "THREE", kUndoable), pv2::step(Step::kFour, "FOUR", kUndoable),
      pv2::step(Step::kFive, "FIVE", kUndoable));

  explicit FiveSteps(std::string table = {}) : table_(std::move(table)), body_(90, 'x') {}
  void fields(auto& f) {
    f.arg(1, "table", table_);
    f(2, "body", body_);
    f(3, "count", count_);
  }
  pv2::LockSet locks() const override {
    return pv2::LockSet().table("bench", table_, pv2::LockMode::kExclusive);
  }
  Flow execute_from_state(Step step, pv2::StepContext& /*ctx*/) override {
    ++count_;
    return step == Step::kFive ? done() : next(static_cast<Step>(static_cast<int>(step) + 1));
  }

 private:
  std::string table_;
  std::string body_;
  std::uint64_t count_ = 0;
};

// One step that asks for a retry `retries` times, then ends.
class Retries final : public pv2::Procedure {
 public:
  static constexpr std::string_view kType = "bench.Retries";
  explicit Retries(std::uint32_t retries = 0) : retries_(retries) {}
  void fields(auto& f) { f.arg(1, "retries", retries_); }
  pv2::Outcome execute(pv2::StepContext& ctx) override {
    if (ctx.attempt() <= retries_) return retry({pv2::StatusCode::kUnavailable, "not yet"});
    return done();
  }

 private:
  std::uint32_t retries_;
};

// Waits for one completion after the other.
class Waits final : public pv2::Procedure {
 public:
  static constexpr std::string_view kType = "bench.Waits";
  explicit Waits(std::vector<pv2::Completion<int>>& world, std::uint32_t waits = 0)
      : world_(world), waits_(waits) {}
  void fields(auto& f) {
    f.arg(1, "waits", waits_);
    f(2, "done", done_);
  }
  pv2::Outcome execute(pv2::StepContext& ctx) override {
    const int* value =
        ctx.await<int>([&](pv2::Completion<int> c) { world_.push_back(std::move(c)); });
    if (value == nullptr) return wait();
    return ++done_ < waits_ ? again() : done();
  }

 private:
  std::vector<pv2::Completion<int>>& world_;
  std::uint32_t waits_;
  std::uint32_t done_ = 0;
};

class Parent final : public pv2::StateMachineProcedure<Step> {
 public:
  static constexpr std::string_view kType = "bench.Parent";
  static constexpr auto kSteps = pv2::steps(pv2::step(Step::kOne, "SPAWN", kUndoable),
                                            pv2::step(Step::kTwo, "END", kUndoable));
  explicit Parent(std::uint32_t children = 0) : children_(children) {}
  void fields(auto& f) { f.arg(1, "children", children_); }
  Flow execute_from_state(Step step, pv2::StepContext& ctx) override {
    if (step == Step::kTwo) return done();
    for (std::uint32_t i = 0; i < children_; ++i) ctx.spawn(FiveSteps("t" + std::to_string(i)));
    return next(Step::kTwo);
  }

 private:
  std::uint32_t children_;
};

struct Bench {
  std::vector<pv2::Completion<int>> world;
  std::shared_ptr<pv2::ManualClock> clock = std::make_shared<pv2::ManualClock>();
  std::unique_ptr<pv2::ProcedureExecutor> executor;

  explicit Bench(std::unique_ptr<pv2::ProcedureStore> store, bool simple = false) {
    pv2::ExecutorOptions options;
    options.store = std::move(store);
    options.registry.add<FiveSteps>().add<Retries>().add<Waits>(world).add<Parent>();
    options.workers = 0;
    options.clock = clock;
    options.retry = {.base = 1us, .cap = 1us, .jitter_percent = 0};
    if (simple) options.scheduler = std::make_unique<pv2::SimpleProcedureScheduler>(*clock);
    auto opened = pv2::ProcedureExecutor::open(std::move(options));
    if (!opened.ok()) {
      std::fprintf(stderr, "%s\n", opened.status().to_string().c_str());
      std::exit(1);
    }
    executor = *std::move(opened);
  }

  enum class Tables { kOneEach, kOneForAll };

  // Lives of FiveSteps, 16 at a time, each with a nonce and acknowledged.
  void lives(std::uint64_t count, Tables tables = Tables::kOneEach) {
    for (std::uint64_t first = 1; first <= count; first += 16) {
      std::vector<pv2::ProcedureId> ids;
      for (std::uint64_t i = first; i < first + 16 && i <= count; ++i) {
        const std::uint64_t table = tables == Tables::kOneEach ? i : 0;
        executor->async().submit(FiveSteps("t" + std::to_string(table)), {.nonce = {1, i}},
                                 [&](pv2::Result<pv2::Submitted> s) { ids.push_back(s->id); });
      }
      executor->run_until_idle();
      for (const pv2::ProcedureId id : ids) executor->async().acknowledge(id, [](pv2::Status) {});
      executor->run_until_idle();
    }
  }

  // Lives of FiveSteps, 64 at a time, each submitted by the callback that has the result of
  // another.
  void lives_from_callbacks(std::uint64_t count) {
    std::uint64_t next = 0;
    const pv2::AsyncExecutor async = executor->async(pv2::CallbackThread::kEngine);
    std::function<void()> submit = [&] {
      if (next == count) return;
      ++next;
      async.submit(FiveSteps("t" + std::to_string(next)), {.nonce = {1, next}},
                   [&](const pv2::Result<pv2::Submitted>& submitted) {
                     async.wait(submitted->id, [&](const pv2::Result<pv2::ProcedureResult>& r) {
                       async.acknowledge(r->id, [](const pv2::Status&) {});
                       submit();
                     });
                   });
    };
    for (int i = 0; i < 64; ++i) submit();
    executor->run_until_idle();
  }

  // As lives(), with execute() instead of three verbs.
  void executions(std::uint64_t count) {
    for (std::uint64_t first = 1; first <= count; first += 16) {
      for (std::uint64_t i = first; i < first + 16 && i <= count; ++i) {
        executor->async().execute(FiveSteps("t" + std::to_string(i)), {.nonce = {1, i}},
                                  [](const pv2::Result<pv2::ProcedureResult>&) {});
      }
      executor->run_until_idle();
    }
  }

  void run(pv2::Result<pv2::Submitted> submitted) {
    if (!submitted.ok()) std::exit(1);
    executor->run_until_idle();
    while (executor->inspect().live_procedures() != 0) {
      std::vector<pv2::Completion<int>> arrived;
      arrived.swap(world);
      for (const auto& completion : arrived) completion(1);
      clock->advance(2us);
      executor->run_until_idle();
    }
  }
};

// Procedures that wait, loaded by eight starts one after the other.
void restart(std::uint32_t count) {
  constexpr int kStarts = 8;
  const auto disk = std::make_shared<pv2::MemoryDisk>();
  {
    Bench bench(pv2::memory(disk));
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!bench.executor->submit(Waits(bench.world, 1)).ok()) std::exit(1);
    }
    bench.executor->run_until_idle();
  }
  for (int start = 0; start < kStarts; ++start) {
    if (Bench(pv2::memory(disk)).executor->inspect().live_procedures() != count) std::exit(1);
  }
}

// Counts are compared only with counts made with the same compiler.
int print_compiler() {
#ifdef __clang__
  std::printf("clang %d\n", __clang_major__);
#else
  std::printf("g++ %d\n", __GNUC__);
#endif
  return 0;
}

int usage() {
  std::fprintf(stderr,
               "usage: instruction_paths PATH COUNT | --compiler\n"
               "paths: noop_master noop_simple noop_callbacks noop_execute contended memory retry "
               "wait children restart\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view path = argc > 1 ? argv[1] : "";
  if (argc == 2 && path == "--compiler") return print_compiler();
  if (argc != 3) return usage();
  const auto count = static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10));
  if (path == "noop_master") {
    Bench(pv2::noop()).lives(count);
  } else if (path == "noop_simple") {
    Bench(pv2::noop(), true).lives(count);
  } else if (path == "noop_callbacks") {
    Bench(pv2::noop(), true).lives_from_callbacks(count);
  } else if (path == "noop_execute") {
    Bench(pv2::noop()).executions(count);
  } else if (path == "contended") {
    Bench(pv2::noop()).lives(count, Bench::Tables::kOneForAll);
  } else if (path == "memory") {
    Bench(pv2::memory()).lives(count);
  } else if (path == "retry") {
    Bench bench(pv2::memory());
    bench.run(bench.executor->submit(Retries(count)));
  } else if (path == "wait") {
    Bench bench(pv2::memory());
    bench.run(bench.executor->submit(Waits(bench.world, count)));
  } else if (path == "children") {
    Bench bench(pv2::noop());
    bench.run(bench.executor->submit(Parent(count)));
  } else if (path == "restart") {
    restart(count);
  } else {
    return usage();
  }
  return 0;
}
