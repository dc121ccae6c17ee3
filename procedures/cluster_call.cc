// SPDX-License-Identifier: Apache-2.0
//
// The texts for the calls of the ports. Nothing here can fail.

#include "pv2/procedures/cluster_call.h"

namespace pv2 {

std::string_view to_string(ClusterCall call) noexcept {
  switch (call) {
    case ClusterCall::kReadTable:
      return "read_table";
    case ClusterCall::kReadRegion:
      return "read_region";
    case ClusterCall::kRegionsOn:
      return "regions_on";
    case ClusterCall::kReadServer:
      return "read_server";
    case ClusterCall::kWrite:
      return "write";
    case ClusterCall::kWriteLayout:
      return "write_layout";
    case ClusterCall::kOpenRegion:
      return "open_region";
    case ClusterCall::kCloseRegion:
      return "close_region";
    case ClusterCall::kLiveServers:
      return "live_servers";
    case ClusterCall::kFence:
      return "fence";
    case ClusterCall::kRefresh:
      return "refresh";
  }
  return "unknown";
}

}  // namespace pv2
