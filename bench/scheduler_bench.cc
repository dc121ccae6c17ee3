// SPDX-License-Identifier: Apache-2.0
//
// scheduler_bench: the workload with which HBase measures its scheduler: 10 M operations by 10
// threads on 5 tables of 10 regions, first added at the back, then polled, locked and released.
// Half of the operations lock a region, half read a table. Prints the operations per second of each
// phase, and the processor time per operation, which depends less on other load on the machine. It
// measures no engine and no store. A round is a million operations; as JSON it prints the medians
// of the rounds.
//
//     scheduler_bench [--quick] [--json] [--operations=N] [--threads=N] [--batch=N] [--simple]
//                     [--distinct]

#include <fmt/format.h>
#include <pv2/base/clock.h>
#include <pv2/scheduler/master_procedure_scheduler.h>
#include <pv2/scheduler/simple_procedure_scheduler.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "harness/machine.h"
#include "harness/result_row.h"
#include "harness/rounds.h"

namespace {

struct Options {
  std::uint64_t operations = 10'000'000;
  unsigned threads = 10;
  // How many entries a poll takes and a settle() gives back. The engine takes up to 64 at once;
  // HBase takes 1.
  std::size_t batch = 16;
  bool json = false;
  bool simple = false;
  bool distinct = false;  // each operation has its own table: only the mutex is contended
};

constexpr int kTables = 5;
constexpr int kRegions = 10;
constexpr std::uint64_t kRoundMax = 1'000'000;  // operations alive at once: about half a gigabyte

class Operation final : public pv2::SchedulerEntry {};

using Seconds = std::chrono::duration<double>;

// The processor time of all threads of this process.
Seconds processor_time() { return Seconds(static_cast<double>(std::clock()) / CLOCKS_PER_SEC); }

// How long a phase took, by the clock and in processor time.
struct Cost {
  Seconds wall{0};
  Seconds processor{0};

  Cost& operator+=(const Cost& other) {
    wall += other.wall;
    processor += other.processor;
    return *this;
  }
  [[nodiscard]] double millions_per_second(std::uint64_t operations) const {
    return static_cast<double>(operations) / wall.count() / 1e6;
  }
  [[nodiscard]] double processor_ns(std::uint64_t operations) const {
    return processor.count() * 1e9 / static_cast<double>(operations);
  }
};

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {
    if (options.simple) {
      scheduler_ = std::make_unique<pv2::SimpleProcedureScheduler>(clock_);
    } else {
      scheduler_ = std::make_unique<pv2::MasterProcedureScheduler>(clock_);
    }
  }

  void run() {
    for (std::uint64_t done = 0; done < options_.operations; done += operations_.size()) {
      prepare_round();
      const pv2::bench::UsageMeter meter;
      const Cost add_cost = timed([&](unsigned thread) { add(thread); });
      left_ = operations_.size();
      const Cost serve_cost = timed([&](unsigned) { serve(); });
      note_round(add_cost, serve_cost, meter.stop().other_cores);
      add_ += add_cost;
      serve_ += serve_cost;
      total_ += operations_.size();
    }
  }

  // What the engine pays per procedure and per step when nothing is contended, on one thread.
  void run_alone() {
    constexpr int kRepeats = 200'000;
    constexpr std::size_t kFew = 100;  // prepared together, and small enough for the cache
    std::chrono::nanoseconds admit_complete{0};
    for (std::size_t done = 0; done < kRepeats; done += kFew) {
      std::vector<Operation> few(kFew);
      for (Operation& one : few) {
        one.id = pv2::ProcedureId{1};
        one.edit_locks().table("ns", "table", pv2::LockMode::kExclusive);
      }
      const auto began = std::chrono::steady_clock::now();
      for (Operation& one : few) {
        scheduler_->admit(one);
        pv2::EntryList batch;
        batch.push_back(one, pv2::Disposition::kComplete);
        scheduler_->settle(std::move(batch));
      }
      admit_complete += std::chrono::steady_clock::now() - began;
    }
    admit_complete_ = admit_complete / kRepeats;

    constexpr std::size_t kRun = 16;
    std::vector<Operation> holders(kRun);
    pv2::EntryList first;
    for (std::size_t i = 0; i < kRun; ++i) {
      holders[i].id = pv2::ProcedureId{i + 1};
      holders[i].edit_locks().table("ns", "table" + std::to_string(i), pv2::LockMode::kExclusive);
      first.push_back(holders[i], pv2::Disposition::kBack);
    }
    scheduler_->settle(std::move(first));
    std::vector<pv2::SchedulerEntry*> run(kRun);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kRepeats; ++i) cycle(run, pv2::Disposition::kFront);
    poll_front_ = (std::chrono::steady_clock::now() - begin) / (kRepeats * kRun);
    cycle(run, pv2::Disposition::kComplete);
  }

  void print() const {
    const double add = add_.millions_per_second(total_);
    const double serve = serve_.millions_per_second(total_);
    const double add_ns = add_.processor_ns(total_);
    const double serve_ns = serve_.processor_ns(total_);
    if (options_.json) return print_json();
    fmt::print("{} operations, {} threads, batches of {}{}{}\n", total_, options_.threads,
               options_.batch, options_.simple ? ", simple" : "",
               options_.distinct ? ", distinct tables" : "");
    fmt::print("  add to back            {:8.2f} M/s, {:.0f} ns of processor time each\n", add,
               add_ns);
    fmt::print("  poll + lock + release  {:8.2f} M/s, {:.0f} ns\n", serve, serve_ns);
    fmt::print("  alone: admit + complete{:8} ns, poll + settle(kFront) in runs of 16 {} ns each\n",
               admit_complete_.count(), poll_front_.count());
  }

 private:
  // New entries, because completed ones have no locks any more.
  void prepare_round() {
    const std::uint64_t round = std::min(options_.operations, kRoundMax);
    operations_ = std::vector<Operation>(round);
    for (std::uint64_t i = 0; i < round; ++i) prepare(operations_[i], i);
  }
  void prepare(Operation& operation, std::uint64_t number) const {
    operation.id = pv2::ProcedureId{number + 1};
    if (options_.distinct) {
      operation.edit_locks().table("ns", "table" + std::to_string(number),
                                   pv2::LockMode::kExclusive);
      return;
    }
    const std::uint64_t spread = number * 0x9E3779B97F4A7C15ULL >> 32;
    const std::string table = "table" + std::to_string(spread % kTables);
    if (spread / kTables % 2 == 0) {
      operation.edit_locks().table("ns", table, pv2::LockMode::kShared);
    } else {
      operation.edit_locks().region("ns", table,
                                    "r" + std::to_string(spread / kTables / 2 % kRegions),
                                    pv2::LockMode::kExclusive);
    }
  }

  void note_round(const Cost& add, const Cost& serve, double other_cores) {
    const std::uint64_t count = operations_.size();
    rounds_.add({.values = {{"add_per_s", add.millions_per_second(count) * 1e6},
                            {"poll_lock_release_per_s", serve.millions_per_second(count) * 1e6},
                            {"add_processor_ns", add.processor_ns(count)},
                            {"poll_lock_release_processor_ns", serve.processor_ns(count)}},
                 .other_cores = other_cores});
  }

  void print_json() const {
    pv2::bench::ResultRow row("scheduler");
    row.set("operations", static_cast<double>(total_)).set("threads", options_.threads);
    row.set("batch", static_cast<double>(options_.batch));
    row.set("admit_complete_ns", static_cast<double>(admit_complete_.count()));
    row.set("poll_settle_front_ns", static_cast<double>(poll_front_.count()));
    rounds_.fill(row, "poll_lock_release_per_s");
    row.print();
  }

  std::size_t cycle(std::vector<pv2::SchedulerEntry*>& run, pv2::Disposition disposition) {
    const std::size_t taken = scheduler_->poll(run, std::chrono::milliseconds(1));
    pv2::EntryList batch;
    for (std::size_t i = 0; i < taken; ++i) batch.push_back(*run[i], disposition);
    scheduler_->settle(std::move(batch));
    return taken;
  }

  template <class Work>
  Cost timed(Work work) {
    std::barrier start(static_cast<std::ptrdiff_t>(options_.threads) + 1);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < options_.threads; ++i) {
      threads.emplace_back([&start, &work, i] {
        start.arrive_and_wait();
        work(i);
      });
    }
    start.arrive_and_wait();
    const auto begin = std::chrono::steady_clock::now();
    const Seconds processor_begin = processor_time();
    for (std::thread& thread : threads) thread.join();
    return {std::chrono::steady_clock::now() - begin, processor_time() - processor_begin};
  }

  void add(unsigned thread) {
    const std::size_t begin = operations_.size() * thread / options_.threads;
    const std::size_t end = operations_.size() * (thread + 1) / options_.threads;
    for (std::size_t i = begin; i < end;) {
      pv2::EntryList batch;
      for (; batch.size() < options_.batch && i < end; ++i) {
        batch.push_back(operations_[i], pv2::Disposition::kBack);
      }
      scheduler_->settle(std::move(batch));
    }
  }

  void serve() {
    std::vector<pv2::SchedulerEntry*> run(options_.batch);
    while (left_.load(std::memory_order_relaxed) != 0) {
      const std::size_t taken = cycle(run, pv2::Disposition::kComplete);
      left_.fetch_sub(taken, std::memory_order_relaxed);  // a count; it publishes nothing
    }
  }

  const Options options_;
  pv2::SystemClock clock_;
  std::unique_ptr<pv2::ProcedureScheduler> scheduler_;
  std::vector<Operation> operations_;
  std::atomic<std::uint64_t> left_{0};
  std::uint64_t total_ = 0;
  pv2::bench::Rounds rounds_;
  Cost add_;
  Cost serve_;
  std::chrono::nanoseconds admit_complete_{0};
  std::chrono::nanoseconds poll_front_{0};
};

std::uint64_t number_in(std::string_view argument) {
  return std::strtoull(argument.substr(argument.find('=') + 1).data(), nullptr, 10);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--quick") {
      options.operations = 3 * kRoundMax;
    } else if (argument == "--json") {
      options.json = true;
    } else if (argument == "--simple") {
      options.simple = true;
    } else if (argument == "--distinct") {
      options.distinct = true;
    } else if (argument.starts_with("--operations=")) {
      options.operations = std::max<std::uint64_t>(1, number_in(argument));
    } else if (argument.starts_with("--threads=")) {
      options.threads = static_cast<unsigned>(std::max<std::uint64_t>(1, number_in(argument)));
    } else if (argument.starts_with("--batch=")) {
      options.batch = std::max<std::uint64_t>(1, number_in(argument));
    } else {
      fmt::print(stderr,
                 "scheduler_bench: what is '{}'? See the head of bench/scheduler_bench.cc.\n",
                 argument);
      return 2;
    }
  }
  Bench bench(options);
  bench.run();
  bench.run_alone();
  bench.print();
}
