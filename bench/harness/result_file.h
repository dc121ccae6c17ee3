// SPDX-License-Identifier: Apache-2.0
//
// Reads back what ResultRow printed: a file of JSON lines. Any other line ends the program, because
// a table made of half the results would look complete.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pv2::bench {

/// One line. A value.
class ResultLine {
 public:
  using Value = std::variant<double, std::string>;
  explicit ResultLine(std::map<std::string, Value, std::less<>> fields)
      : fields_(std::move(fields)) {}

  /// The number in `field`; nullopt when the field is missing or null.
  [[nodiscard]] std::optional<double> number(std::string_view field) const;
  [[nodiscard]] bool has(std::string_view field, const Value& value) const;
  [[nodiscard]] const std::map<std::string, Value, std::less<>>& fields() const { return fields_; }

 private:
  std::map<std::string, Value, std::less<>> fields_;
};

[[nodiscard]] std::vector<ResultLine> read_results(const std::string& path);

}  // namespace pv2::bench
