// SPDX-License-Identifier: Apache-2.0
//
// Retention only counts. Results are deleted by acknowledgements; Expiry acknowledges a result that
// has expired, in place of the host.

#include "core/retention.h"

#include <algorithm>
#include <string>

#include "records/kept_result.h"

namespace pv2 {

void Retention::kept(ProcedureId id, Duration age, std::uint64_t bytes) {
  if (counts()) bytes_ += bytes;
  if (remembers_) by_age_.emplace(age, id);
}

void Retention::gone(ProcedureId id, Duration age, std::uint64_t bytes) {
  // The sizes come from rows on disk. One of these may be damaged, so the sum may be wrong.
  if (counts()) bytes_ -= std::min(bytes, bytes_);
  if (remembers_) by_age_.erase({age, id});
}

Status Retention::why_full(std::size_t nonces) const {
  const auto refused = [](const std::string& what) {
    return Status(StatusCode::kResourceExhausted,
                  what +
                      "; nothing is forgotten early, so nothing new with a nonce is accepted "
                      "until results are acknowledged or their time is over");
  };
  if (policy_.max_keyed_results != 0 && nonces >= policy_.max_keyed_results) {
    return refused(std::to_string(nonces) +
                   " submissions with a nonce are live or have a result that is kept, which is the "
                   "limit (RetentionPolicy::max_keyed_results)");
  }
  if (policy_.max_bytes != 0 && bytes_ >= policy_.max_bytes) {
    return refused("the results that are kept take " + std::to_string(bytes_) +
                   " bytes, which is the limit (RetentionPolicy::max_bytes)");
  }
  return Status();
}

std::optional<KeptResult> Retention::oldest_remembered() const {
  if (by_age_.empty()) return std::nullopt;
  const auto& [age, id] = *by_age_.begin();
  KeptResult oldest;
  oldest.age = age;
  oldest.id = id;
  return oldest;
}

}  // namespace pv2
