// SPDX-License-Identifier: Apache-2.0
//
// ResultRow: one figure with its circumstances, as a line of JSON on standard output. Nothing else
// is ever printed there; progress for a person goes to standard error. The fields are described in
// docs/performance.md.

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pv2::bench {

/// Owned by one thread.
class ResultRow {
 public:
  /// Has the fields that every row has; a field that is never set is null.
  explicit ResultRow(std::string_view bench);

  ResultRow& set(std::string_view name, double value);
  ResultRow& set(std::string_view name, std::string_view text);

  /// Prints one line and flushes it, so that a later failure does not lose it.
  void print() const;

 private:
  ResultRow& set_json(std::string_view name, std::string json);

  std::vector<std::pair<std::string, std::string>> fields_;
};

/// Prints a line for the person who waits, on standard error.
void progress(std::string_view line);

}  // namespace pv2::bench
