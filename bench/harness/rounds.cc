// SPDX-License-Identifier: Apache-2.0
//
// Which rounds count is computed at each call: there are a handful.

#include "harness/rounds.h"

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "harness/machine.h"
#include "harness/samples.h"

namespace pv2::bench {
namespace {

constexpr double kQuietCores = 0.3;

std::vector<double> values_of(const std::vector<const Round*>& rounds, std::string_view name) {
  std::vector<double> values;
  for (const Round* round : rounds) {
    const auto at = round->values.find(name);
    if (at != round->values.end()) values.push_back(at->second);
  }
  return values;
}

}  // namespace

void Rounds::add(Round round) {
  const double worth = processors_worth();
  round.other_cores += std::max(1U, std::thread::hardware_concurrency()) - worth;
  round.values["processors"] = worth;
  rounds_.push_back(std::move(round));
}

std::size_t Rounds::quiet() const {
  return static_cast<std::size_t>(
      std::count_if(rounds_.begin(), rounds_.end(),
                    [](const Round& round) { return round.other_cores <= kQuietCores; }));
}

std::vector<const Round*> Rounds::counting() const {
  const bool quiet_only = quiet() != 0;
  std::vector<const Round*> counted;
  for (const Round& round : rounds_) {
    if (!quiet_only || round.other_cores <= kQuietCores) counted.push_back(&round);
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
  row.set("quiet_runs", static_cast<double>(quiet()));
  row.set("other_cores", median(others));
}

}  // namespace pv2::bench
