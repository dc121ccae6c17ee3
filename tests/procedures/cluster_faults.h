// SPDX-License-Identifier: Apache-2.0
//
// Every kind of call that the ports have, and every way in which a call of that kind can fail, as
// lists for tests that go through them or choose among them.

#pragma once

#include <pv2/procedures/cluster_call.h>
#include <pv2/procedures/memory_cluster.h>

#include <algorithm>
#include <array>
#include <vector>

namespace pv2::testing {

/// Every kind of call that there is.
inline std::vector<ClusterCall> all_calls() {
  std::vector<ClusterCall> calls;
  for (int call = 0; call <= static_cast<int>(ClusterCall::kRefresh); ++call) {
    calls.push_back(static_cast<ClusterCall>(call));
  }
  return calls;
}

/// The ways in which a call of that kind can fail; empty for those that only wait.
inline std::vector<ClusterFault> faults_of(ClusterCall call) {
  constexpr std::array kWaits{ClusterCall::kWhenCrashed, ClusterCall::kWhenRecovered,
                              ClusterCall::kAcquireSplitter};
  if (std::ranges::find(kWaits, call) != kWaits.end()) return {};
  constexpr std::array kDispatches{ClusterCall::kOpenRegion, ClusterCall::kCloseRegion,
                                   ClusterCall::kSplitLog, ClusterCall::kRefreshPeer,
                                   ClusterCall::kClaimQueues};
  if (std::ranges::find(kDispatches, call) != kDispatches.end()) {
    return {ClusterFault::kFail,          ClusterFault::kLoseRequest, ClusterFault::kLoseReply,
            ClusterFault::kReportFailure, ClusterFault::kRefuse,      ClusterFault::kRepeatReport};
  }
  return {ClusterFault::kFail, ClusterFault::kLoseRequest, ClusterFault::kLoseReply,
          ClusterFault::kHalf};
}

}  // namespace pv2::testing
