// SPDX-License-Identifier: Apache-2.0
//
// AuditFindings: the contradictions that an audit has found, in words.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/execution.h"

namespace pv2 {

/// Keeps the first twenty: more would not be read. Owned by the audit.
class AuditFindings {
 public:
  void add(std::string contradiction);
  void add_of(const Execution& execution, std::string_view contradiction);
  /// Adds a finding if `what` is said to be another number than the counted one.
  void compare(const Execution& execution, std::string_view what, std::size_t said,
               std::size_t counted);

  [[nodiscard]] std::vector<std::string> take() && { return std::move(found_); }

 private:
  std::vector<std::string> found_;
};

}  // namespace pv2
