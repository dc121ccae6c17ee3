// SPDX-License-Identifier: Apache-2.0
//
// waiting_bench: what an inactive procedure costs: its memory while it waits for an event, and the
// processor time of an engine in which a million procedures wait for timers that are one to two
// hours away. Measured on the Noop store, so that the memory is the engine's alone, and each in a
// process of its own.
//
//     waiting_bench [--quick] ...

#include <fmt/format.h>
#include <malloc.h>
#include <pv2/engine/async_executor.h>
#include <pv2/engine/procedure_registry.h>
#include <pv2/store/noop_procedure_store.h>

#include <memory>
#include <thread>

#include "harness/child.h"
#include "harness/engine.h"
#include "harness/filler.h"
#include "harness/machine.h"
#include "harness/options.h"
#include "harness/rounds.h"
#include "harness/waiting.h"
#include "harness/work_folder.h"

namespace pv2::bench {
namespace {

// The memory of the second 200 000 is measured, so what the engine reserved for the first ones does
// not count.
constexpr std::uint64_t kStep = 200'000;
constexpr std::uint64_t kTimers = 1'000'000;

void wait_for(const Arrivals& arrivals, std::uint64_t wanted) {
  wait_until("all procedures wait",
             [&] { return arrivals.count.load(std::memory_order_relaxed) >= wanted; });
}

// Lets what is queued come to an end, then returns unused memory to the system.
double settled_bytes() {
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  malloc_trim(0);
  return resident_bytes();
}

[[noreturn]] void measure_memory(bool whole) {
  Arrivals arrivals;
  ProcedureRegistry registry;
  registry.add<WaitsForEvent>(arrivals);
  const auto executor = open_engine(noop(), std::move(registry));
  Filler filler(*executor, [&](ProcedureExecutor& on, std::uint64_t number, SubmitCallback done) {
    const Nonce nonce = whole ? Nonce{1, number + 1} : Nonce{};
    on.async().submit(WaitsForEvent(arrivals, number, whole), {.nonce = nonce}, std::move(done));
  });
  filler.submit_up_to(kStep);
  wait_for(arrivals, kStep);
  const double before = settled_bytes();
  const double heap_before = static_cast<double>(mallinfo2().uordblks);
  filler.submit_up_to(2 * kStep);
  wait_for(arrivals, 2 * kStep);
  const double heap = static_cast<double>(mallinfo2().uordblks) - heap_before;
  report_to_parent("bytes_per_procedure", (settled_bytes() - before) / kStep);
  report_to_parent("heap_bytes_per_procedure", heap / kStep);
  end_abruptly();
}

[[noreturn]] void measure_idle(const Options& options) {
  Arrivals arrivals;
  ProcedureRegistry registry;
  registry.add<WaitsForTimer>(arrivals);
  const auto executor = open_engine(noop(), std::move(registry));
  Filler filler(*executor, [&](ProcedureExecutor& on, std::uint64_t number, SubmitCallback done) {
    on.async().submit(WaitsForTimer(arrivals, number, WaitsForTimer::Locks::kTable),
                      {.nonce = {1, number + 1}}, std::move(done));
  });
  const UsageMeter filling;
  filler.submit_up_to(kTimers);
  wait_for(arrivals, kTimers);
  report_to_parent("fill_s", filling.stop().seconds);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  Rounds rounds;
  for (unsigned i = 0; i < options.runs; ++i) {
    const UsageMeter meter;
    // Longer than the patience of an idle worker, so that the figure includes its look for work.
    std::this_thread::sleep_for(2 * options.window + std::chrono::seconds(1));
    const Usage usage = meter.stop();
    rounds.add({.values = {{"core_percent", usage.cpu_seconds / usage.seconds * 100}},
                .other_cores = usage.other_cores});
  }
  report_to_parent("core_percent", rounds.median_of("core_percent"));
  end_abruptly();
}

void print_memory(const Options& options, bool whole) {
  Rounds rounds;
  for (unsigned i = 0; i < options.runs; ++i) {
    progress(fmt::format("memory of {} procedures, round {} of {}", whole ? "whole" : "plain",
                         i + 1, options.runs));
    Round round;
    round.values = run_child({whole ? "--memory=whole" : "--memory=plain"});
    round.other_cores = 0;
    round.is_timed = false;  // memory does not depend on other programs
    rounds.add(std::move(round));
  }
  ResultRow row("waiting_memory");
  row.set("workers", 1).set("store", "noop").set("with_lock_and_nonce", whole ? 1 : 0);
  rounds.fill(row, "bytes_per_procedure");
  row.print();
}

void print_idle(const Options& options) {
  progress("a million timers");
  const ChildReport report = run_child({"--idle=1", fmt::format("--runs={}", options.runs),
                                        fmt::format("--window={}", options.window.count())});
  ResultRow row("idle_timers");
  row.set("workers", 1).set("store", "noop").set("procedures", static_cast<double>(kTimers));
  row.set("core_percent", report.at("core_percent")).set("fill_s", report.at("fill_s"));
  // Like memory: the load of other programs does not change what an idle engine uses.
  row.set("runs", options.runs).set("quiet_runs", options.runs);
  row.print();
}

int run(int argc, char** argv) {
  std::string memory;
  bool idle = false;
  const Options options = parse_options(argc, argv, "waiting_bench",
                                        [&](std::string_view name, std::string_view value) {
                                          if (name == "--memory") memory = value;
                                          if (name == "--idle") idle = true;
                                          return name == "--memory" || name == "--idle";
                                        });
  if (!memory.empty()) measure_memory(memory == "whole");
  if (idle) measure_idle(options);
  print_memory(options, false);
  print_memory(options, true);
  print_idle(options);
  return 0;
}

}  // namespace
}  // namespace pv2::bench

int main(int argc, char** argv) { return pv2::bench::run(argc, argv); }
