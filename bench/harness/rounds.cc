// SPDX-License-Identifier: Apache-2.0
//
// Which rounds count is computed at each call: there are a handful.

#include "harness/rounds.h"

#include <algorithm>
#include <limits>
#include <set>
#include <thread>
#include <utility>

#include "harness/machine.h"
#include "harness/samples.h"

namespace pv2::bench {
namespace {

constexpr double kQuietCores = 0.3;
// How much longer than in the nearest round of the program a line may take between two processors.
constexpr double kNear = 1.7;
double nearest_line_ns = std::numeric_limits<double>::max();

std::vector<double> values_of(const std::vector<const Round*>& rounds, std::string_view name) {
  std::vector<double> values;
  for (const Round* round : rounds) {
    const auto at = round->values.find(name);
    if (at != round->values.end()) values.push_back(at->second);
  }
  return values;
}

}  // namespace

void note_processors(Round& round) {
  const double worth = two_processors_worth();
  double& least = round.values.try_emplace("processors", worth).first->second;
  least = std::min(least, worth);
  double& longest = round.values["line_ns"];
  const double line_ns = line_round_trip_ns();
  longest = std::max(longest, line_ns);
  nearest_line_ns = std::min(nearest_line_ns, line_ns);
}

void Rounds::add(Round round) {
  if (round.is_timed && std::thread::hardware_concurrency() > 1) {
    note_processors(round);
    round.other_cores += std::max(0.0, 2 - round.values["processors"]);
  }
  rounds_.push_back(std::move(round));
}

std::vector<const Round*> Rounds::quiet() const {
  const auto line_ns = [](const Round& round) {
    const auto at = round.values.find("line_ns");
    return at == round.values.end() ? 0 : at->second;
  };
  std::vector<const Round*> quiet;
  for (const Round& round : rounds_) {
    const bool is_near = line_ns(round) <= kNear * nearest_line_ns;
    if (is_near && round.other_cores <= kQuietCores) quiet.push_back(&round);
  }
  return quiet;
}

std::vector<const Round*> Rounds::counting() const {
  std::vector<const Round*> counted = quiet();
  if (counted.empty()) {
    for (const Round& round : rounds_) counted.push_back(&round);
  }
  return counted;
}

double Rounds::median_of(std::string_view name) const {
  return median(values_of(counting(), name));
}

void Rounds::fill(ResultRow& row, std::string_view main) const {
  const std::vector<const Round*> counted = counting();
  std::set<std::string, std::less<>> names;
  for (const Round* round : counted) {
    for (const auto& [name, value] : round->values) names.insert(name);
  }
  for (const std::string& name : names) row.set(name, median(values_of(counted, name)));
  const std::vector<double> values = values_of(counted, main);
  if (!values.empty()) {
    row.set("least", *std::min_element(values.begin(), values.end()));
    row.set("greatest", *std::max_element(values.begin(), values.end()));
  }
  std::vector<double> others;
  for (const Round& round : rounds_) others.push_back(round.other_cores);
  row.set("runs", static_cast<double>(rounds_.size()));
  row.set("quiet_runs", static_cast<double>(quiet().size()));
  row.set("other_cores", median(others));
}

}  // namespace pv2::bench
