// SPDX-License-Identifier: Apache-2.0
//
// results_table: the figures of a run, for people, each next to its target and the limit of the
// machine. The targets stand here and nowhere else. A row whose benchmark was not run is left out.
// It does not judge: the exit code is 0 whether targets are met or not.
//
//     results_table FILE

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/result_file.h"

namespace pv2::bench {
namespace {

// With fewer quiet rounds the figure may be that of a busy machine, or an accident.
constexpr double kQuietEnough = 3;

enum class Good { kAtLeast, kAtMost, kUnder };

using Conditions = std::vector<std::pair<std::string_view, ResultLine::Value>>;

/// One row of the table. A value.
struct Target {
  std::string_view what;
  std::string_view bench;
  Conditions where;
  std::string_view field;
  std::string_view unit;
  Good good;
  double target;
  std::string_view limit;
  double scale = 1;  ///< Converts the field to the unit.
  /// Not 0: the greatest figure with at most this many in flight counts. 0: `where` says it all.
  double in_flight_max = 0;
};

ResultLine::Value text(const char* word) { return std::string(word); }

const std::vector<Target>& targets() {
  using enum Good;
  static const std::vector<Target> all = {
      {"durable steps/s on LevelDB, 1 in flight",
       "durable_steps",
       {{"in_flight", 1.0}},
       "ratio",
       "x raw",
       kAtLeast,
       0.55,
       "0.63 (0.52 with the insert's sync)"},
      {"64 in flight",
       "durable_steps",
       {{"in_flight", 64.0}},
       "ratio_per_in_flight",
       "x 64 x raw",
       kAtLeast,
       0.30,
       "0.41"},
      {"4096 in flight",
       "durable_steps",
       {{"in_flight", 4096.0}},
       "ratio",
       "x raw",
       kAtLeast,
       60,
       "85"},
      {"engine CPU per durable step, 4096 in flight",
       "durable_steps",
       {{"in_flight", 4096.0}},
       "engine_cpu_us_per_step",
       "us",
       kAtMost,
       1.5,
       "LevelDB itself 1.7-2.0"},
      {"commit p50, up to 64 in flight",
       "durable_steps",
       {},
       "p50_over_raw_p50",
       "x raw p50",
       kAtMost,
       2.5,
       "2.0",
       1,
       64},
      {"commit p99, 1024 in flight",
       "durable_steps",
       {{"in_flight", 1024.0}},
       "p99_over_raw_p50",
       "x raw p50",
       kAtMost,
       40,
       "30"},
      {"steps/s in memory, 1 worker, simple scheduler",
       "memory_steps",
       {{"scheduler", text("simple")}, {"workers", 1.0}, {"user_work_us", 0.0}},
       "steps_per_s",
       "M/s",
       kAtLeast,
       3,
       "16-20",
       1e-6},
      {"steps/s in memory, 1 worker, master scheduler",
       "memory_steps",
       {{"scheduler", text("master")}, {"workers", 1.0}, {"user_work_us", 0.0}},
       "steps_per_s",
       "M/s",
       kAtLeast,
       1.5,
       "16-20",
       1e-6},
      {"2 workers / 1, empty steps, simple",
       "memory_scaling",
       {{"scheduler", text("simple")}, {"user_work_us", 0.0}},
       "ratio",
       "",
       kAtLeast,
       0.9,
       "1.9"},
      {"2 workers / 1, empty steps, master",
       "memory_scaling",
       {{"scheduler", text("master")}, {"user_work_us", 0.0}},
       "ratio",
       "",
       kAtLeast,
       0.9,
       "1.9"},
      {"2 workers / 1, 2 us of user work, simple",
       "memory_scaling",
       {{"scheduler", text("simple")}, {"user_work_us", 2.0}},
       "ratio",
       "",
       kAtLeast,
       1.6,
       "1.9"},
      {"2 workers / 1, 2 us of user work, master",
       "memory_scaling",
       {{"scheduler", text("master")}, {"user_work_us", 2.0}},
       "ratio",
       "",
       kAtLeast,
       1.6,
       "1.9"},
      {"submission durable, 1 caller, p50",
       "submit",
       {{"mode", text("one_caller")}},
       "p50_over_raw_p50",
       "x raw p50",
       kAtMost,
       1.8,
       ""},
      {"submissions/s, 256 outstanding",
       "submit",
       {{"mode", text("async")}},
       "ratio",
       "x raw",
       kAtLeast,
       20,
       ""},
      {"submissions/s, 256 blocked threads",
       "submit",
       {{"mode", text("threads")}},
       "ratio",
       "x raw",
       kAtLeast,
       8,
       "110 k/s"},
      {"a tree of 10 000 / independent procedures",
       "tree",
       {},
       "tree_over_independent",
       "",
       kAtLeast,
       0.8,
       ""},
      {"replay of 100 k live, first new submission",
       "replay",
       {{"procedures", 1e5}},
       "first_submission_ms",
       "s",
       kAtMost,
       0,
       "",
       1e-3},
      {"replay of 100 k live, all runnable",
       "replay",
       {{"procedures", 1e5}},
       "all_runnable_ms",
       "s",
       kAtMost,
       0,
       "",
       1e-3},
      {"replay of 1 M live, first new submission",
       "replay",
       {{"procedures", 1e6}},
       "first_submission_ms",
       "s",
       kAtMost,
       1.5,
       "0.4-0.8",
       1e-3},
      {"replay of 1 M live, all runnable",
       "replay",
       {{"procedures", 1e6}},
       "all_runnable_ms",
       "s",
       kAtMost,
       3,
       "0.4-0.8",
       1e-3},
      {"memory per waiting procedure",
       "waiting_memory",
       {{"with_lock_and_nonce", 0.0}},
       "bytes_per_procedure",
       "B",
       kAtMost,
       700,
       ""},
      {"the same with its lock and nonce",
       "waiting_memory",
       {{"with_lock_and_nonce", 1.0}},
       "bytes_per_procedure",
       "B",
       kAtMost,
       0,
       ""},
      {"bytes written / record bytes, 4096 in flight",
       "durable_steps",
       {{"in_flight", 4096.0}},
       "written_over_record_bytes",
       "",
       kAtMost,
       3.5,
       "2.1"},
      {"idle with 1 M timers", "idle_timers", {}, "core_percent", "% of a core", kUnder, 0.5, ""},
      {"scheduler alone: added to the back",
       "scheduler",
       {},
       "add_per_s",
       "M/s",
       kAtLeast,
       5,
       "",
       1e-6},
      {"polled, locked and released",
       "scheduler",
       {},
       "poll_lock_release_per_s",
       "M/s",
       kAtLeast,
       3,
       "",
       1e-6},
      {"wake by an event to the next step, p50, in memory",
       "wake",
       {{"store", text("noop")}},
       "p50_us",
       "us",
       kAtMost,
       60,
       "17-27"},
      {"p99", "wake", {{"store", text("noop")}}, "p99_us", "us", kAtMost, 500, ""},
      {"the same on LevelDB, p50",
       "wake",
       {{"store", text("leveldb")}},
       "p50_us",
       "us",
       kAtMost,
       60,
       "17-27"},
      {"p99", "wake", {{"store", text("leveldb")}}, "p99_us", "us", kAtMost, 500, ""},
  };
  return all;
}

std::string number(double value) {
  if (value == 0) return "0";
  if (value >= 99.5) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, value >= 9.95 ? 1 : 2);
}

bool meets(const Target& target, double value) {
  switch (target.good) {
    case Good::kAtLeast:
      return value >= target.target;
    case Good::kAtMost:
      return value <= target.target;
    case Good::kUnder:
      return value < target.target;
  }
  return false;
}

std::string wanted(const Target& target) {
  if (target.target == 0) return "";
  const std::string_view sign = target.good == Good::kAtLeast  ? ">="
                                : target.good == Good::kAtMost ? "<="
                                                               : "<";
  return fmt::format("{} {} {}", sign, number(target.target), target.unit);
}

bool matches(const ResultLine& line, const Target& target) {
  if (!line.has("bench", std::string(target.bench))) return false;
  if (target.in_flight_max != 0 && line.number("in_flight") > target.in_flight_max) return false;
  return std::all_of(target.where.begin(), target.where.end(), [&](const auto& condition) {
    return line.has(condition.first, condition.second);
  });
}

void print_row(std::string_view what, std::string_view target, std::string_view measured,
               std::string_view met, std::string_view limit, std::string_view rounds) {
  fmt::print("| {:<50} | {:<18} | {:<18} | {:<5} | {:<34} | {:<6} |\n", what, target, measured, met,
             limit, rounds);
}

void print_targets(const std::vector<ResultLine>& lines) {
  print_row("what", "target", "measured", "met", "limit", "rounds");
  print_row("---", "---", "---", "---", "---", "---");
  for (const Target& target : targets()) {
    const ResultLine* found = nullptr;
    for (const ResultLine& line : lines) {
      if (!matches(line, target) || !line.number(target.field)) continue;
      if (found == nullptr || *line.number(target.field) > *found->number(target.field)) {
        found = &line;
      }
    }
    if (found == nullptr) continue;
    const double value = *found->number(target.field) * target.scale;
    const double quiet = found->number("quiet_runs").value_or(0);
    const double runs = found->number("runs").value_or(1);
    std::string met;
    if (target.target != 0) met = meets(target, value) ? "yes" : "NO";
    if (!met.empty() && quiet < kQuietEnough) met += " ?";
    print_row(target.what, wanted(target), fmt::format("{} {}", number(value), target.unit), met,
              target.limit, fmt::format("{:.0f}/{:.0f}", quiet, runs));
  }
}

// Details of the durable rows.
void print_durable(const std::vector<ResultLine>& lines) {
  constexpr std::string_view kRow =
      "| {:>9} | {:>9} | {:>9} | {:>9} | {:>8} | {:>8} | {:>11} | {:>17} |\n";
  bool first = true;
  for (const ResultLine& line : lines) {
    if (!line.has("bench", std::string("durable_steps"))) continue;
    if (std::exchange(first, false)) {
      fmt::print("\n");
      fmt::print(fmt::runtime(kRow), "in flight", "steps/s", "x raw", "rec./sync", "p50 us",
                 "p99 us", "CPU us/step", "LevelDB alone, x");
      fmt::print(fmt::runtime(kRow),
                 "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:");
    }
    const double in_flight = line.number("in_flight").value_or(0);
    double alone = 0;
    for (const ResultLine& other : lines) {
      if (other.has("bench", std::string("leveldb_alone")) && other.has("in_flight", in_flight)) {
        alone = other.number("ratio").value_or(0);
      }
    }
    const auto value = [&](std::string_view field) {
      return number(line.number(field).value_or(0));
    };
    fmt::print(fmt::runtime(kRow), fmt::format("{:.0f}", in_flight), value("steps_per_s"),
               value("ratio"), value("records_per_sync"), value("p50_us"), value("p99_us"),
               value("cpu_us_per_step"), number(alone));
  }
}

int run(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "results_table FILE: the table of a file of JSON lines\n");
    return 2;
  }
  const std::vector<ResultLine> lines = read_results(argv[1]);
  for (const ResultLine& line : lines) {
    if (!line.has("bench", std::string("raw_sync"))) continue;
    fmt::print("raw: {} syncs/s of 256 B on a zero-filled file, p50 {} us, p99 {} us\n\n",
               number(line.number("raw_syncs_per_s").value_or(0)),
               number(line.number("p50_us").value_or(0)),
               number(line.number("p99_us").value_or(0)));
  }
  print_targets(lines);
  print_durable(lines);
  fmt::print(
      "\nrounds: quiet ones / all. Quiet are those in which other programs used at most 0.3 cores; "
      "the figure is\ntheir median, or that of all if none was. With fewer than three 'met' has a "
      "question mark. What each\nfigure includes: docs/performance.md\n");
  return 0;
}

}  // namespace
}  // namespace pv2::bench

int main(int argc, char** argv) { return pv2::bench::run(argc, argv); }
