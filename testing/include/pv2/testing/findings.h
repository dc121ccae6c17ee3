// SPDX-License-Identifier: Apache-2.0
//
// Findings: what a check found wrong, in words. The harnesses of pv2::testing return them instead
// of calling a test framework, so that any framework, or none, can be used. It cannot fail.

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pv2::testing {

/// Owned by one thread.
class Findings {
 public:
  /// Adds what is wrong, in words.
  void add(std::string words) { list_.push_back(std::move(words)); }
  /// `words` says what was expected; it becomes a finding when that does not hold.
  void expect(bool holds, std::string_view words) {
    if (!holds) add("expected, but not so: " + std::string(words));
  }

  [[nodiscard]] bool empty() const noexcept { return list_.empty(); }
  [[nodiscard]] const std::vector<std::string>& list() const noexcept { return list_; }
  /// One line for each finding.
  [[nodiscard]] std::string words() const {
    std::string all;
    for (const std::string& finding : list_) all += "  - " + finding + "\n";
    return all;
  }

 private:
  std::vector<std::string> list_;
};

}  // namespace pv2::testing
