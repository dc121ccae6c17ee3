// SPDX-License-Identifier: Apache-2.0
//
// A server that has just begun to listen tells the master so by itself, a moment later. A statement
// that follows may name it, so whoever has started it waits until the master knows it.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/cluster/cluster_client.h>
#include <pv2/procedures/table.h>

#include <chrono>
#include <span>

namespace pv2::shell {

/// A server registers within milliseconds of its start, unless the machine is very busy.
inline constexpr Duration kPatienceForServers = std::chrono::seconds(10);

/// Asks the master again and again until it counts all `servers` among the live ones. False: after
/// `patience`, or when the master does not answer, it had not. Blocks.
bool wait_until_known(cluster::ClusterClient& client, std::span<const ServerName> servers,
                      Duration patience = kPatienceForServers);

}  // namespace pv2::shell
