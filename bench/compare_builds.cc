// SPDX-License-Identifier: Apache-2.0
//
// compare_builds: the figures of two builds that bench/compare.sh has measured in turn. The rounds
// are paired: each ratio is of two neighbours in time, and the median of the ratios counts. So a
// machine that is slow for a minute is slow for both.
//
//     compare_builds FOLDER    with the files a-1, b-1, a-2, b-2 and so on

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "harness/result_file.h"
#include "harness/samples.h"
#include "harness/work_folder.h"

namespace pv2::bench {
namespace {

// What a line says about how it was measured, and not what was.
const std::set<std::string, std::less<>> kConditions = {
    "in_flight",           "workers",     "user_work_us", "pool_threads", "procedures",
    "table_regions",       "batch",       "threads",      "window_ms",    "clients",
    "with_lock_and_nonce", "outstanding", "children",     "waiters"};
// What describes the rounds that a program makes by itself.
const std::set<std::string, std::less<>> kAboutRounds = {
    "processors", "line_ns",      "ns_per_load", "runs",     "quiet_runs",
    "rounds",     "quiet_rounds", "least",       "greatest", "other_cores"};

/// One figure in all rounds, of both builds. A value.
struct Pairs {
  std::vector<double> a;
  std::vector<double> b;
  std::vector<double> ratios;
};

std::string name_of(const ResultLine& line) {
  std::string name;
  for (const auto& [field, value] : line.fields()) {
    if (const auto* const text = std::get_if<std::string>(&value)) {
      name += (name.empty() ? "" : " ") + *text;
    } else if (kConditions.contains(field)) {
      name += fmt::format("{}{}={:g}", name.empty() ? "" : " ", field, std::get<double>(value));
    }
  }
  return name;
}

std::map<std::string, ResultLine> by_name(const std::string& path) {
  std::map<std::string, ResultLine> lines;
  for (ResultLine& line : read_results(path)) {
    std::string name = name_of(line);
    lines.insert_or_assign(std::move(name), std::move(line));
  }
  return lines;
}

void compare(const std::string& folder) {
  std::map<std::pair<std::string, std::string>, Pairs> figures;
  int rounds = 0;
  for (int round = 1; std::filesystem::exists(fmt::format("{}/b-{}", folder, round)); ++round) {
    rounds = round;
    const auto first = by_name(fmt::format("{}/a-{}", folder, round));
    const auto second = by_name(fmt::format("{}/b-{}", folder, round));
    for (const auto& [name, line] : first) {
      const auto other = second.find(name);
      if (other == second.end()) continue;
      for (const auto& [field, value] : line.fields()) {
        const auto a = line.number(field);
        const auto b = other->second.number(field);
        if (!a || !b || kConditions.contains(field) || kAboutRounds.contains(field)) continue;
        Pairs& pairs = figures[{name, field}];
        pairs.a.push_back(*a);
        pairs.b.push_back(*b);
        if (*a != 0) pairs.ratios.push_back(*b / *a);
      }
    }
  }
  if (rounds == 0) die(folder + " has no round of both builds");
  fmt::print("{} rounds; medians, and of the ratios the least and the greatest\n\n", rounds);
  std::string shown;
  for (const auto& [key, pairs] : figures) {
    const auto& [name, field] = key;
    if (std::exchange(shown, name) != name) fmt::print("{}\n", name);
    if (pairs.ratios.empty()) continue;
    const auto [least, greatest] = std::minmax_element(pairs.ratios.begin(), pairs.ratios.end());
    fmt::print("    {:<28} {:>12.6g} {:>12.6g}   x {:.2f} ({:.2f} to {:.2f})\n", field,
               median(pairs.a), median(pairs.b), median(pairs.ratios), *least, *greatest);
  }
}

}  // namespace
}  // namespace pv2::bench

int main(int argc, char** argv) {
  if (argc != 2) pv2::bench::die("usage: compare_builds FOLDER");
  pv2::bench::compare(argv[1]);
  return 0;
}
