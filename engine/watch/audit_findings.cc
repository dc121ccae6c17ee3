// SPDX-License-Identifier: Apache-2.0
//
// A finding about a procedure begins with the procedure's id.

#include "watch/audit_findings.h"

#include <utility>

#include "model/names.h"

namespace pv2 {

void AuditFindings::add(std::string contradiction) {
  constexpr std::size_t kFindingsMax = 20;
  if (found_.size() < kFindingsMax) found_.push_back(std::move(contradiction));
}

void AuditFindings::add_of(const Execution& execution, std::string_view contradiction) {
  add(name_of(execution.id) + ": " + std::string(contradiction));
}

void AuditFindings::compare(const Execution& execution, std::string_view what, std::size_t said,
                            std::size_t counted) {
  if (said == counted) return;
  add_of(execution, std::string(what) + " is said to be " + std::to_string(said) + ", and is " +
                        std::to_string(counted));
}

}  // namespace pv2
