// SPDX-License-Identifier: Apache-2.0
//
// replay_bench: how long a restart takes with 100 000 and with 1 000 000 live procedures on
// LevelDB. Of ten, four wait for a timer, two have a child that does, two wait for an event and are
// runnable after a restart. All have 100 bytes of state and a lock (children: on a region of their
// parent's table); all but the children have a nonce. The process that made them ends like a crash,
// so the store also reads its logs. Each restart is a process of its own on a copy of that folder;
// the page cache is as the copy left it, warm. It is compared with a plain scan: another process
// opens the store on the same copy, and visits every row once, with checksums, on one thread.
//
// Each restart is done twice: with everything loaded before open() returns, and in the background.
//
//     replay_bench [--procedures=N] [--quick] ...

#include <fmt/format.h>
#include <pv2/engine/async_executor.h>
#include <pv2/engine/inspection.h>
#include <pv2/engine/procedure_registry.h>
#include <pv2/store/leveldb_procedure_store.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>

#include "harness/child.h"
#include "harness/engine.h"
#include "harness/filler.h"
#include "harness/machine.h"
#include "harness/options.h"
#include "harness/rounds.h"
#include "harness/store_probe.h"
#include "harness/waiting.h"
#include "harness/work_folder.h"

namespace pv2::bench {
namespace {

namespace fs = std::filesystem;

// Eight submissions make ten live procedures.
constexpr std::uint64_t kPerGroup = 10;
constexpr std::uint64_t kRootsPerGroup = 8;

ProcedureRegistry types(Arrivals& arrivals) {
  ProcedureRegistry registry;
  registry.add<WaitsForEvent>(arrivals).add<WaitsForTimer>(arrivals).add<HasChild>(arrivals);
  return registry;
}

// The number decides the kind, so that the kinds are mixed.
void submit_root(Arrivals& arrivals, ProcedureExecutor& executor, std::uint64_t number,
                 SubmitCallback done) {
  const SubmitOptions options{.nonce = {1, number + 1}};
  switch (number % kRootsPerGroup) {
    case 0:
    case 1:
      return executor.async().submit(HasChild(arrivals, number), options, std::move(done));
    case 2:
    case 3:
      return executor.async().submit(WaitsForEvent(arrivals, number, true), options,
                                     std::move(done));
    default:
      return executor.async().submit(WaitsForTimer(arrivals, number, WaitsForTimer::Locks::kTable),
                                     options, std::move(done));
  }
}

[[noreturn]] void fill(const std::string& path, std::uint64_t procedures) {
  Arrivals arrivals;
  auto owned_probe = std::make_unique<StoreProbe>(leveldb(path));
  StoreProbe& probe = *owned_probe;
  const auto executor = open_engine(std::move(owned_probe), types(arrivals));
  Filler filler(*executor, std::bind_front(submit_root, std::ref(arrivals)));
  filler.submit_up_to(procedures / kPerGroup * kRootsPerGroup);
  wait_until("all procedures wait, and that is durable", [&] {
    return arrivals.count.load(std::memory_order_relaxed) >= procedures && probe.idle();
  });
  end_abruptly();
}

double milliseconds_since(BenchClock::time_point begin) {
  return std::chrono::duration<double, std::milli>(BenchClock::now() - begin).count();
}

[[noreturn]] void replay(const std::string& path, std::uint64_t procedures, Load load) {
  Arrivals arrivals;
  const UsageMeter meter;
  const auto begin = BenchClock::now();
  const auto executor = open_engine(leveldb(path), types(arrivals), {.load = load});
  report_to_parent("open_ms", milliseconds_since(begin));
  must(executor->submit(WaitsForEvent(arrivals, ~std::uint64_t{0}, true), {.nonce = {2, 1}}),
       "the first new submission");
  report_to_parent("first_submission_ms", milliseconds_since(begin));
  // Loaded procedures are runnable, or wait for what they waited for before; both are live.
  must(executor->wait_until_loaded(), "loading the store");
  wait_until("all procedures are live",
             [&] { return executor->inspect().live_procedures() >= procedures + 1; });
  report_to_parent("all_runnable_ms", milliseconds_since(begin));
  const Usage usage = meter.stop();
  report_to_parent("cpu_ms", usage.cpu_seconds * 1e3);
  report_to_parent("other_cores", usage.other_cores);
  report_to_parent("resident_bytes_per_procedure",
                   resident_bytes() / static_cast<double>(procedures));
  // Each procedure that waits for an event has run its step again.
  wait_until("what waits for an event has run again", [&] {
    return arrivals.count.load(std::memory_order_relaxed) >= procedures / kPerGroup * 2 + 1;
  });
  report_to_parent("all_have_run_ms", milliseconds_since(begin));
  end_abruptly();
}

class NoSink final : public CommitSink {
  void on_committed(CommitList) noexcept override {}
};

[[noreturn]] void scan(const std::string& path) {
  NoSink sink;
  const auto begin = BenchClock::now();
  const auto store = leveldb(path);
  must(store->recover_lease(sink), "opening the store");
  report_to_parent("store_open_ms", milliseconds_since(begin));
  std::size_t rows = 0;
  for (const Space space :
       {Space::kEngine, Space::kHost, Space::kNonce, Space::kProcedure, Space::kResult}) {
    must(store->scan(space, "",
                     [&rows](const StoredRow&) {
                       ++rows;
                       return Status();
                     }),
         "scanning the store");
  }
  report_to_parent("scan_ms", milliseconds_since(begin));
  report_to_parent("rows", static_cast<double>(rows));
  end_abruptly();
}

// LevelDB's tables never change once they are written, so a hard link is as good as a copy.
void copy_store(const std::string& from, const std::string& to) {
  fs::create_directory(to);
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    const fs::path target = to / entry.path().filename();
    if (entry.path().extension() == ".ldb") {
      fs::create_hard_link(entry.path(), target);
    } else {
      fs::copy_file(entry.path(), target);
    }
  }
}

double megabytes(const std::string& path) {
  double bytes = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    bytes += static_cast<double>(entry.file_size());
  }
  return bytes / 1e6;
}

void measure(const Options& options, WorkFolder& folder, std::uint64_t procedures) {
  const std::string filled = folder.fresh("filled");
  progress(fmt::format("making {} procedures", procedures));
  run_child({"--fill=" + filled, fmt::format("--procedures={}", procedures)});
  Rounds rounds;
  for (unsigned i = 0; i < options.runs; ++i) {
    progress(fmt::format("replay of {}, round {} of {}", procedures, i + 1, options.runs));
    const std::string copy = folder.fresh("copy");
    copy_store(filled, copy);
    const ChildReport scanned =
        run_child({"--scan=" + copy, fmt::format("--procedures={}", procedures)});
    Round round;
    round.values = scanned;
    const double scan_ms = scanned.at("scan_ms");
    for (const std::string way : {"", "in_background_"}) {
      const std::string again = folder.fresh("again");
      copy_store(filled, again);
      const ChildReport report =
          run_child({(way.empty() ? "--replay=" : "--replay-in-background=") + again,
                     fmt::format("--procedures={}", procedures)});
      folder.remove(again);
      for (const auto& [name, value] : report) round.values[way + name] = value;
      for (const std::string what : {"first_submission", "all_runnable"}) {
        round.values[way + what + "_over_scan"] = report.at(what + "_ms") / scan_ms;
      }
      round.other_cores = std::max(round.other_cores, report.at("other_cores"));
    }
    folder.remove(copy);
    rounds.add(std::move(round));
  }
  ResultRow row("replay");
  row.set("workers", 1).set("store", "leveldb").set("procedures", static_cast<double>(procedures));
  row.set("store_megabytes", megabytes(filled));
  rounds.fill(row, "all_runnable_ms");
  row.print();
  folder.remove(filled);
}

int run(int argc, char** argv) {
  std::string to_fill;
  std::string to_replay;
  std::string to_replay_in_background;
  std::string to_scan;
  std::uint64_t procedures = 0;
  Options options = parse_options(argc, argv, "replay_bench [--procedures=N]",
                                  [&](std::string_view name, std::string_view value) {
                                    if (name == "--fill") to_fill = value;
                                    if (name == "--replay") to_replay = value;
                                    if (name == "--replay-in-background") {
                                      to_replay_in_background = value;
                                    }
                                    if (name == "--scan") to_scan = value;
                                    if (name == "--procedures") procedures = number_in(value);
                                    return (name == "--procedures" && procedures != 0) ||
                                           name == "--fill" || name == "--replay" ||
                                           name == "--replay-in-background" || name == "--scan";
                                  });
  procedures = procedures / kPerGroup * kPerGroup;
  if (!to_fill.empty()) fill(to_fill, procedures);
  if (!to_replay.empty()) replay(to_replay, procedures, Load::kBeforeOpenReturns);
  if (!to_replay_in_background.empty()) {
    replay(to_replay_in_background, procedures, Load::kInBackground);
  }
  if (!to_scan.empty()) scan(to_scan);
  WorkFolder folder(options.data);
  if (procedures != 0) {
    measure(options, folder, procedures);
    return 0;
  }
  measure(options, folder, 100'000);
  measure(options, folder, 1'000'000);
  return 0;
}

}  // namespace
}  // namespace pv2::bench

int main(int argc, char** argv) { return pv2::bench::run(argc, argv); }
