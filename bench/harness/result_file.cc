// SPDX-License-Identifier: Apache-2.0
//
// Boost.JSON without its library: its sources are included here, once.

#include "harness/result_file.h"

#include <boost/json/src.hpp>
#include <fstream>

#include "harness/work_folder.h"

namespace pv2::bench {

std::optional<double> ResultLine::number(std::string_view field) const {
  const auto at = fields_.find(field);
  if (at == fields_.end() || !std::holds_alternative<double>(at->second)) return std::nullopt;
  return std::get<double>(at->second);
}

bool ResultLine::has(std::string_view field, const Value& value) const {
  const auto at = fields_.find(field);
  return at != fields_.end() && at->second == value;
}

std::vector<ResultLine> read_results(const std::string& path) {
  std::ifstream file(path);
  if (!file) die("cannot read " + path);
  std::vector<ResultLine> lines;
  for (std::string text; std::getline(file, text);) {
    boost::json::error_code error;
    const boost::json::value value = boost::json::parse(text, error);
    if (error || !value.is_object()) die(path + " has a line that is no JSON object: " + text);
    std::map<std::string, ResultLine::Value, std::less<>> fields;
    for (const auto& member : value.get_object()) {
      const boost::json::value& field = member.value();
      if (field.is_string()) fields.emplace(member.key(), std::string(field.get_string()));
      if (field.is_number()) fields.emplace(member.key(), field.to_number<double>());
    }
    lines.emplace_back(std::move(fields));
  }
  return lines;
}

}  // namespace pv2::bench
