// SPDX-License-Identifier: Apache-2.0
//
// The calls of the ports, and the moments within a call, as values: for tests that let calls fail,
// and for probes that watch a cluster at work or end its process at a chosen moment.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace pv2 {

/// The calls of the ports. A dispatch counts by the kind of its operation.
enum class ClusterCall : std::uint8_t {
  kReadNamespace,
  kTablesOf,
  kReadTable,
  kRegionsOf,
  kReadRegion,
  kRegionsOn,
  kReadServer,
  kWrite,
  kMakeNamespace,
  kRemoveNamespace,
  kWriteLayout,
  kReadDescriptor,
  kWriteDescriptor,
  kArchiveTable,
  kHoldsData,
  kMakeReferences,
  kCarrySequences,
  kRemoveRegions,
  kHasRecoveredEdits,
  kOpenRegion,
  kCloseRegion,
  kSplitLog,
  kRefreshPeer,
  kClaimQueues,
  kLiveServers,
  kWhenCrashed,
  kWhenRecovered,
  kAcquireSplitter,
  kFence,
  kLogsOf,
  kArchiveLog,
  kRemoveLogs,
  kReadPeer,
  kListPeers,
  kWritePeer,
  kRemovePeer,
  kIsOwnCluster,
  kHasQueues,
  kRemoveQueues,
  kRefresh,
};

[[nodiscard]] std::string_view to_string(ClusterCall call) noexcept;

/// A moment in a call. A plain value.
struct ClusterMoment {
  enum class Phase : std::uint8_t {
    kAsked,   ///< Nothing has happened yet.
    kPartly,  ///< A part of it has happened (calls of TableFiles only: one more file was made).
    kDone,    ///< It has happened, durably; the caller was not told yet.
  };
  ClusterCall call = ClusterCall::kReadTable;
  Phase phase = Phase::kAsked;
  std::string effect_key;  ///< Empty for calls that only read.
};

/// Called at each moment, on a thread of the cluster.
using ClusterProbe = std::function<void(const ClusterMoment&)>;

}  // namespace pv2
