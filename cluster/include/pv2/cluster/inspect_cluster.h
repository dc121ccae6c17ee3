// SPDX-License-Identifier: Apache-2.0
//
// inspect_cluster(): looks at a cluster from outside, for a check that its parts agree
// (find_disorder()). It asks the region servers what they serve, reads the rows of the catalogue as
// any client does, and looks at the directories. It changes nothing.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/status.h>
#include <pv2/procedures/cluster_snapshot.h>

#include <functional>
#include <string>

#include "pv2/cluster/cluster_client.h"

namespace pv2::cluster {

/// Blocks, for as long as the client's verbs may. The cluster may be at work: then the parts are of
/// different moments, and disagree. What nobody outside can see (the master's cache of descriptors)
/// is shown as if it were right. kUnavailable: the master or a server does not answer.
[[nodiscard]] Result<ClusterSnapshot> inspect_cluster(ClusterClient& client,
                                                      const std::string& root);
/// As above, but looks only at the directories before it returns. `done` is called once, mostly on
/// the loop's thread, and must not block. No question about rows takes longer than `timeout`; the
/// others have the limit of one call. The client outlives it, or ends it with kStopping.
void inspect_cluster(ClusterClient& client, const std::string& root, Duration timeout,
                     std::function<void(Result<ClusterSnapshot>)> done);

}  // namespace pv2::cluster
