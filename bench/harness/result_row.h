// SPDX-License-Identifier: Apache-2.0
//
// ResultRow: one figure with everything that belongs to it, as a line of JSON on standard output.
// Nothing else is ever printed there; what a person may want to read meanwhile goes to standard
// error. The fields are described in docs/performance.md.

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pv2::bench {

/// Owned by one thread.
class ResultRow {
 public:
  /// With the fields that every row has, empty (null) as long as nobody sets them.
  explicit ResultRow(std::string_view bench);

  ResultRow& set(std::string_view name, double value);
  ResultRow& set(std::string_view name, std::string_view text);

  /// One line, and flushed: a later failure does not take it back.
  void print() const;

 private:
  ResultRow& set_json(std::string_view name, std::string json);

  std::vector<std::pair<std::string, std::string>> fields_;
};

/// A line for the person who waits, on standard error.
void progress(std::string_view line);

}  // namespace pv2::bench
