// SPDX-License-Identifier: Apache-2.0
//
// ClusterWatch: what must hold for a cluster at any moment, while procedures work on it, servers
// die and the master crashes. What must hold at rest is find_disorder(). It changes nothing.

#pragma once

#include <pv2/engine/inspection.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/procedures/cluster_snapshot.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "pv2/testing/findings.h"

namespace pv2::testing {

/// Owned by one thread.
class ClusterWatch {
 public:
  /// Adds what is wrong now. `unrecovered` are servers that are dead, or taken for dead, and whose
  /// ServerCrash has not ended, or is not even submitted: it answers for what was on them.
  void look(const ClusterSnapshot& snapshot, ProcedureExecutor& executor,
            const std::set<ServerName>& unrecovered, Findings& findings);

 private:
  /// A region is open on one live server at most.
  static void check_holders(const ClusterSnapshot& snapshot, Findings& findings);
  /// The open sequence of a region never decreases.
  void check_sequences(const ClusterSnapshot& snapshot, Findings& findings);
  /// Somebody works on, or waits for, each region and table that is between two states.
  static void check_responsibility(const ClusterSnapshot& snapshot, ProcedureExecutor& executor,
                                   const std::set<ServerName>& unrecovered, Findings& findings);

  std::map<std::string, std::uint64_t> sequences_;  // the highest, by region
};

}  // namespace pv2::testing
