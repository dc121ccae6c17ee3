// SPDX-License-Identifier: Apache-2.0
//
// The texts for the operations of servers. Nothing here can fail.

#include "pv2/procedures/server_calls.h"

namespace pv2 {

std::string_view to_string(RemoteKind kind) noexcept {
  switch (kind) {
    case RemoteKind::kOpenRegion:
      return "open a region";
    case RemoteKind::kCloseRegion:
      return "close a region";
    case RemoteKind::kSplitLog:
      return "split a log";
    case RemoteKind::kRefreshPeer:
      return "refresh a peer";
    case RemoteKind::kClaimQueues:
      return "claim replication queues";
  }
  return "unknown";
}

}  // namespace pv2
