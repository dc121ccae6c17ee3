// SPDX-License-Identifier: Apache-2.0
//
// The texts for the calls of the ports. Nothing here can fail.

#include "pv2/procedures/cluster_call.h"

#include <array>
#include <cstddef>

namespace pv2 {

std::string_view to_string(ClusterCall call) noexcept {
  // In the order of the enumerators.
  static constexpr std::array kNames = std::to_array<std::string_view>({
      "read_namespace",
      "tables_of",
      "read_table",
      "regions_of",
      "read_region",
      "regions_on",
      "read_server",
      "write",
      "make_namespace",
      "remove_namespace",
      "write_layout",
      "read_descriptor",
      "write_descriptor",
      "archive_table",
      "holds_data",
      "make_references",
      "carry_sequences",
      "remove_regions",
      "has_recovered_edits",
      "open_region",
      "close_region",
      "split_log",
      "refresh_peer",
      "claim_queues",
      "live_servers",
      "when_crashed",
      "when_recovered",
      "acquire_splitter",
      "fence",
      "logs_of",
      "archive_log",
      "remove_logs",
      "read_peer",
      "list_peers",
      "write_peer",
      "remove_peer",
      "is_own_cluster",
      "has_queues",
      "remove_queues",
      "refresh",
  });
  static_assert(kNames.size() == static_cast<std::size_t>(ClusterCall::kRefresh) + 1);
  const auto index = static_cast<std::size_t>(call);
  return index < kNames.size() ? kNames[index] : "unknown";
}

}  // namespace pv2
