// SPDX-License-Identifier: Apache-2.0
//
// Names and texts are our own words, so nothing in them needs escaping.

#include "harness/result_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace pv2::bench {

ResultRow::ResultRow(std::string_view bench) {
  set("bench", bench);
  for (const char* name : {"in_flight", "workers", "store", "steps_per_s", "raw_syncs_per_s",
                           "ratio", "cpu_us_per_step", "p50_us", "p99_us"}) {
    set_json(name, "null");
  }
}

ResultRow& ResultRow::set(std::string_view name, double value) {
  if (!std::isfinite(value)) return set_json(name, "null");
  // Six digits: more than any of the figures is accurate to.
  return set_json(
      name, std::abs(value) >= 1e6 ? fmt::format("{:.0f}", value) : fmt::format("{:.6g}", value));
}

ResultRow& ResultRow::set(std::string_view name, std::string_view text) {
  return set_json(name, fmt::format("\"{}\"", text));
}

ResultRow& ResultRow::set_json(std::string_view name, std::string json) {
  const auto at = std::find_if(fields_.begin(), fields_.end(),
                               [&](const auto& field) { return field.first == name; });
  if (at != fields_.end()) {
    at->second = std::move(json);
  } else {
    fields_.emplace_back(name, std::move(json));
  }
  return *this;
}

void ResultRow::print() const {
  std::string line;
  for (const auto& [name, json] : fields_) {
    line += fmt::format("{}\"{}\":{}", line.empty() ? "{" : ",", name, json);
  }
  fmt::print("{}}}\n", line);
  std::fflush(stdout);
}

void progress(std::string_view line) { fmt::print(stderr, "  {}\n", line); }

}  // namespace pv2::bench
