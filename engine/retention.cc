// SPDX-License-Identifier: Apache-2.0
//
// The books of what is kept. Deleting is the business of acknowledgements: what has expired is
// acknowledged in the host's place.

#include "retention.h"

#include <string>

namespace pv2 {

void Retention::kept(ProcedureId id, WallTime finished, std::size_t bytes) {
  if (!keeps_books() || !kept_.emplace(id, Kept{finished, bytes}).second) return;
  if (policy_.ttl != Duration::zero()) by_age_.emplace(finished, id);
  bytes_ += bytes;
}

void Retention::gone(ProcedureId id) {
  const auto at = kept_.find(id);
  if (at == kept_.end()) return;
  by_age_.erase({at->second.finished, id});
  bytes_ -= at->second.bytes;
  kept_.erase(at);
}

Status Retention::room(std::size_t nonces) const {
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

std::optional<WallTime> Retention::next_expiry() const {
  if (by_age_.empty()) return std::nullopt;
  return later(by_age_.begin()->first, policy_.ttl);
}

void Retention::put_back(ProcedureId id) {
  const auto at = kept_.find(id);
  if (at != kept_.end()) by_age_.emplace(at->second.finished, id);
}

std::vector<ProcedureId> Retention::take_expired(WallTime now, std::size_t most) {
  std::vector<ProcedureId> expired;
  while (!by_age_.empty() && expired.size() < most &&
         later(by_age_.begin()->first, policy_.ttl) <= now) {
    expired.push_back(by_age_.begin()->second);
    by_age_.erase(by_age_.begin());
  }
  return expired;
}

}  // namespace pv2
