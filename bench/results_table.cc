// SPDX-License-Identifier: Apache-2.0
//
// results_table: the figures of a run, for people, each next to its target and the limit of the
// machine. bench/targets.txt lists the rows. A row whose benchmark was not run is left out. It does
// not judge: the exit code is 0 whether targets are met or not.
//
//     results_table TARGETS FILE

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/result_file.h"
#include "harness/work_folder.h"

namespace pv2::bench {
namespace {

// With fewer quiet rounds the figure may be that of a busy machine, or an accident.
constexpr double kQuietEnough = 3;

enum class Good { kNothing, kAtLeast, kAtMost, kUnder };

using Conditions = std::vector<std::pair<std::string, ResultLine::Value>>;

/// One row of the table. A value.
struct Target {
  std::string what;
  std::string bench;
  Conditions where;
  std::string field;
  std::string unit;
  Good good = Good::kNothing;
  double target = 0;
  std::string limit;
  double scale = 1;  ///< Converts the field to the unit.
  /// Not 0: the greatest figure with at most this many in flight counts. 0: `where` says it all.
  double in_flight_max = 0;
};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    std::string_view part = text.substr(begin, end - begin);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.emplace_back(part);
    begin = end + 1;
  }
  return parts;
}

std::optional<double> as_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "durable_steps in_flight<=64", "memory_steps scheduler=simple workers=1".
void read_selection(std::string_view text, Target& target) {
  constexpr std::string_view kAtMostInFlight = "in_flight<=";
  const std::vector<std::string> words = split(text, ' ');
  target.bench = words.front();
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word.starts_with(kAtMostInFlight)) {
      target.in_flight_max = as_number(word.substr(kAtMostInFlight.size())).value_or(0);
      continue;
    }
    const std::size_t equals = word.find('=');
    if (equals == word.npos) die(fmt::format("'{}' in the targets is no condition", word));
    const std::string value(word.substr(equals + 1));
    const std::optional<double> number = as_number(value);
    target.where.emplace_back(word.substr(0, equals),
                              number ? ResultLine::Value(*number) : ResultLine::Value(value));
  }
}

// ">= 0.55 x raw", "- s".
void read_target(std::string_view text, Target& target) {
  const std::size_t space = std::min(text.find(' '), text.size());
  const std::string_view sign = text.substr(0, space);
  text.remove_prefix(std::min(space + 1, text.size()));
  target.good = sign == ">="   ? Good::kAtLeast
                : sign == "<=" ? Good::kAtMost
                : sign == "<"  ? Good::kUnder
                               : Good::kNothing;
  if (target.good != Good::kNothing) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::optional<double> number = as_number(text.substr(0, end));
    if (!number) die(fmt::format("'{}' in the targets has no number", text));
    target.target = *number;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  target.unit = text;
}

// Pairs of lines: a name, and below it, indented, four columns. The file says what they are.
std::vector<Target> read_targets(const std::string& path) {
  std::ifstream file(path);
  if (!file) die("cannot read " + path);
  std::vector<Target> targets;
  std::string name;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    if (!line.starts_with(' ')) {
      name = line;
      continue;
    }
    const std::vector<std::string> columns = split(line, '|');
    if (columns.size() != 4) die(fmt::format("'{}' in the targets has not four columns", line));
    const std::vector<std::string> figure = split(columns[1], '*');
    Target target;
    target.what = name;
    target.field = figure[0];
    target.limit = columns[3];
    if (figure.size() == 2) target.scale = as_number(figure[1]).value_or(1);
    read_selection(columns[0], target);
    read_target(columns[2], target);
    targets.push_back(std::move(target));
  }
  return targets;
}

std::string number(double value) {
  if (value == 0) return "0";
  if (value >= 99.5) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, value >= 9.95 ? 1 : 2);
}

bool meets(const Target& target, double value) {
  switch (target.good) {
    case Good::kNothing:
      return true;
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
  if (target.good == Good::kNothing) return "";
  const std::string_view sign = target.good == Good::kAtLeast  ? ">="
                                : target.good == Good::kAtMost ? "<="
                                                               : "<";
  return fmt::format("{} {} {}", sign, number(target.target), target.unit);
}

bool matches(const ResultLine& line, const Target& target) {
  if (!line.has("bench", target.bench)) return false;
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

void print_targets(const std::vector<Target>& targets, const std::vector<ResultLine>& lines) {
  print_row("what", "target", "measured", "met", "limit", "rounds");
  print_row("---", "---", "---", "---", "---", "---");
  for (const Target& target : targets) {
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
    if (target.good != Good::kNothing) met = meets(target, value) ? "yes" : "NO";
    if (!met.empty() && quiet < kQuietEnough) met += " ?";
    print_row(target.what, wanted(target), fmt::format("{} {}", number(value), target.unit), met,
              target.limit, fmt::format("{:.0f}/{:.0f}", quiet, runs));
  }
}

// What the machine is worth, so that figures of two machines can be told apart.
void print_machine(const std::vector<ResultLine>& lines) {
  for (const ResultLine& line : lines) {
    const auto value = [&](std::string_view field) {
      return number(line.number(field).value_or(0));
    };
    if (line.has("bench", std::string("fixed_loop"))) {
      fmt::print("processor: {} ns per round of a fixed loop\n", value("ns_per_round"));
    }
    if (line.has("bench", std::string("random_loads"))) {
      fmt::print("memory: {} ns per load from 8 MiB in random order ({} to {})\n",
                 value("ns_per_load"), value("least"), value("greatest"));
      fmt::print("two processors: worth {} of one; {} ns for a line to go to the other and back\n",
                 value("processors"), value("line_ns"));
    }
    if (line.has("bench", std::string("raw_sync"))) {
      fmt::print("raw: {} syncs/s of 256 B on a zero-filled file, p50 {} us, p99 {} us\n",
                 value("raw_syncs_per_s"), value("p50_us"), value("p99_us"));
    }
    if (line.has("bench", std::string("leveldb_alone"))) {
      fmt::print("LevelDB alone, {} records per sync: {} records/s, {} us of processor time each\n",
                 value("in_flight"), value("steps_per_s"), value("cpu_us_per_step"));
    }
  }
  fmt::print("\n");
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
  if (argc != 3) {
    fmt::print(stderr, "results_table TARGETS FILE: the table of a file of JSON lines\n");
    return 2;
  }
  const std::vector<Target> targets = read_targets(argv[1]);
  const std::vector<ResultLine> lines = read_results(argv[2]);
  print_machine(lines);
  print_targets(targets, lines);
  print_durable(lines);
  fmt::print(
      "\nrounds: quiet ones / all. Quiet are those in which other programs used at most 0.3 cores, "
      "and "
      "two\nprocessors were worth two; the figure is their median, or that of all if none was. "
      "With "
      "fewer than\nthree 'met' has a question mark. What each figure includes: "
      "docs/performance.md\n");
  return 0;
}

}  // namespace
}  // namespace pv2::bench

int main(int argc, char** argv) { return pv2::bench::run(argc, argv); }
