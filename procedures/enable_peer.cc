// SPDX-License-Identifier: Apache-2.0
//
// What EnablePeer checks, and the row that it decides on. It changes nothing itself; ModifyPeer
// does.

#include "pv2/procedures/enable_peer.h"

namespace pv2 {

Result<std::optional<PeerRow>> EnablePeer::decide(const std::optional<PeerRow>& stored) const {
  if (Status bad = check_exists(stored); !bad.ok()) return bad;
  if (stored->enabled) {
    return Status(StatusCode::kFailedPrecondition, "peer " + peer() + " is enabled already");
  }
  std::optional<PeerRow> changed = stored;
  changed->enabled = true;
  return changed;
}

}  // namespace pv2
