// SPDX-License-Identifier: Apache-2.0
//
// Prints line by line, so that a person can follow.

#include "report.h"

#include <cstdio>

namespace demo {

void Report::tell(const std::string& text) const {
  if (style_ != Style::kStory) return;
  std::puts(text.c_str());
  std::fflush(stdout);
}

void Report::check(const std::string& what, const std::vector<std::string>& findings) {
  ++(findings.empty() ? passed_ : failed_);
  if (findings.empty()) return tell("   ok      " + what);
  std::printf("   FAILED  %s\n", what.c_str());
  for (const std::string& finding : findings) std::printf("           %s\n", finding.c_str());
  std::fflush(stdout);
}

void Report::check(const std::string& what, bool holds, const std::string& otherwise) {
  check(what, holds ? std::vector<std::string>{} : std::vector<std::string>{otherwise});
}

}  // namespace demo
