// SPDX-License-Identifier: Apache-2.0
//
// Report: what the demo tells a person: the story as it happens, if it is told, and the checks with
// their count. With many rounds the story is left out and only failures are reported.

#pragma once

#include <string>
#include <vector>

namespace demo {

/// Owned by one thread.
class Report {
 public:
  enum class Style { kStory, kFailuresOnly };
  explicit Report(Style style) : style_(style) {}

  /// Prints a paragraph of the story.
  void tell(const std::string& text) const;
  /// Reports one check; `findings` say what is wrong, and are empty if all is well.
  void check(const std::string& what, const std::vector<std::string>& findings);
  void check(const std::string& what, bool holds, const std::string& otherwise = "it does not");

  [[nodiscard]] int passed() const { return passed_; }
  [[nodiscard]] int failed() const { return failed_; }

 private:
  Style style_;
  int passed_ = 0;
  int failed_ = 0;
};

}  // namespace demo
