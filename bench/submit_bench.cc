// SPDX-License-Identifier: Apache-2.0
//
// submit_bench: how long it takes until a submission is durable on LevelDB and its caller is told,
// and how often per second that happens: with one caller, with 256 submissions outstanding without
// threads, and with 256 threads that block. A submitted procedure has 100 bytes of state, a lock of
// its own and a nonce, and waits for an event that never comes. Its first step is part of the
// figure, its further steps are not.
//
//     submit_bench [--quick] ...

#include <fmt/format.h>
#include <pv2/engine/async_executor.h>
#include <pv2/engine/inspection.h>
#include <pv2/engine/procedure_registry.h>
#include <pv2/store/leveldb_procedure_store.h>

#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "harness/engine.h"
#include "harness/machine.h"
#include "harness/options.h"
#include "harness/raw_sync.h"
#include "harness/rounds.h"
#include "harness/waiting.h"
#include "harness/work_folder.h"

namespace pv2::bench {
namespace {

constexpr unsigned kOutstanding = 256;

enum class Mode { kOneCaller, kAsync, kThreads };

std::string_view to_string(Mode mode) {
  switch (mode) {
    case Mode::kOneCaller:
      return "one_caller";
    case Mode::kAsync:
      return "async";
    case Mode::kThreads:
      return "threads";
  }
  return "?";
}

/// Submits until stop(), and counts and times the answers. Thread-safe.
class Submitters {
 public:
  Submitters(ProcedureExecutor& executor, CallbackThread callbacks, Arrivals& arrivals)
      : executor_(executor), async_(executor.async(callbacks)), arrivals_(arrivals) {}

  void start(Mode mode) {
    const unsigned threads = mode == Mode::kThreads ? kOutstanding : 1;
    if (mode == Mode::kAsync) {
      for (unsigned i = 0; i < kOutstanding; ++i) submit_async();
      return;
    }
    times_.resize(threads);
    for (unsigned i = 0; i < threads; ++i) {
      threads_.emplace_back([this, i] { submit_blocking(times_[i]); });
    }
  }
  void open_window() { in_window_.store(true, std::memory_order_relaxed); }
  void stop() {
    stopping_.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads_) thread.join();
    wait_until("all submissions are answered",
               [this] { return outstanding_.load(std::memory_order_acquire) == 0; });
  }
  [[nodiscard]] std::uint64_t answered() const { return answered_.load(std::memory_order_relaxed); }
  /// To be called after stop().
  [[nodiscard]] std::uint64_t submitted() const {
    return next_.load(std::memory_order_relaxed) - 1;
  }
  /// The times of the blocking submissions since open_window(). To be called after stop().
  [[nodiscard]] Samples times() const {
    Samples all;
    for (const Samples& samples : times_) all.add_all(samples);
    return all;
  }

 private:
  [[nodiscard]] std::uint64_t next() { return next_.fetch_add(1, std::memory_order_relaxed); }

  void submit_async() {
    const std::uint64_t number = next();
    outstanding_.fetch_add(1, std::memory_order_relaxed);
    async_.submit(WaitsForEvent(arrivals_, number, true), {.nonce = {1, number}},
                  [this](const Result<Submitted>& answer) {
                    must(answer.status(), "submitting");
                    answered_.fetch_add(1, std::memory_order_relaxed);
                    if (!stopping_.load(std::memory_order_relaxed)) submit_async();
                    outstanding_.fetch_sub(1, std::memory_order_release);
                  });
  }

  void submit_blocking(Samples& times) {
    while (!stopping_.load(std::memory_order_relaxed)) {
      const std::uint64_t number = next();
      const auto begin = BenchClock::now();
      must(executor_.submit(WaitsForEvent(arrivals_, number, true), {.nonce = {1, number}}),
           "submitting");
      const std::chrono::duration<double, std::micro> took = BenchClock::now() - begin;
      answered_.fetch_add(1, std::memory_order_relaxed);
      if (in_window_.load(std::memory_order_relaxed)) times.add(took.count());
    }
  }

  ProcedureExecutor& executor_;
  const AsyncExecutor async_;
  Arrivals& arrivals_;
  // All accesses are relaxed, except those to outstanding_: these are counts and hints. Through
  // outstanding_ stop() sees what the callbacks did before they left.
  std::atomic<std::uint64_t> next_{1};
  std::atomic<std::uint64_t> answered_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> in_window_{false};
  std::atomic<std::uint64_t> outstanding_{0};
  std::vector<std::thread> threads_;
  std::vector<Samples> times_;  // one for each thread
};

class SubmitBench {
 public:
  explicit SubmitBench(Options options)
      : options_(std::move(options)), folder_(options_.data), raw_(folder_.fresh("raw-sync")) {}

  void run() {
    for (unsigned round = 0; round < options_.runs; ++round) {
      progress(fmt::format("submissions, round {} of {}", round + 1, options_.runs));
      for (const Mode mode : {Mode::kOneCaller, Mode::kAsync, Mode::kThreads}) measure(mode);
    }
    for (const auto& [mode, rounds] : rounds_) {
      ResultRow row("submit");
      row.set("in_flight", mode == Mode::kOneCaller ? 1 : kOutstanding).set("workers", 1);
      row.set("store", "leveldb").set("mode", to_string(mode));
      rounds.fill(row, mode == Mode::kOneCaller ? "p50_us" : "submissions_per_s");
      row.print();
    }
  }

 private:
  void measure(Mode mode) {
    const RawSyncs raw = raw_.measure(options_.raw_window);
    const std::string path = folder_.fresh("store");
    Arrivals arrivals;
    ProcedureRegistry registry;
    registry.add<WaitsForEvent>(arrivals);
    const auto executor = open_engine(leveldb(path), std::move(registry));
    Submitters submitters(*executor, options_.callbacks, arrivals);
    submitters.start(mode);
    std::this_thread::sleep_for(options_.warm_up);
    submitters.open_window();
    const std::uint64_t before = submitters.answered();
    const UsageMeter meter;
    std::this_thread::sleep_for(options_.window);
    const double answered = static_cast<double>(submitters.answered() - before);
    const Usage usage = meter.stop();
    submitters.stop();
    if (executor->inspect().live_procedures() != submitters.submitted()) {
      die("a procedure has ended, but each of them should wait for ever");
    }
    executor->stop();
    folder_.remove(path);

    Round round;
    round.other_cores = usage.other_cores;
    round.values = {{"submissions_per_s", answered / usage.seconds},
                    {"raw_syncs_per_s", raw.per_second},
                    {"ratio", answered / usage.seconds / raw.per_second},
                    {"cpu_us_per_submission", usage.cpu_seconds / answered * 1e6}};
    Samples times = submitters.times();
    if (times.size() != 0) {
      round.values["p50_us"] = times.percentile(50);
      round.values["p99_us"] = times.percentile(99);
      round.values["p50_over_raw_p50"] = times.percentile(50) / raw.p50_us;
    }
    rounds_[mode].add(std::move(round));
  }

  const Options options_;
  WorkFolder folder_;
  RawSync raw_;
  std::map<Mode, Rounds> rounds_;
};

}  // namespace
}  // namespace pv2::bench

int main(int argc, char** argv) {
  using namespace pv2::bench;
  SubmitBench(parse_options(argc, argv, "submit_bench")).run();
}
