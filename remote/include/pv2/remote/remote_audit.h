// SPDX-License-Identifier: Apache-2.0
//
// What RemoteExecutor tells of the orders that were carried out on a tree. An audit grows without a
// limit, and an answer does not: so it is read in pages, from its newest entry to its oldest. Plain
// values.

#pragma once

#include <pv2/engine/repair.h>

#include <cstdint>
#include <vector>

namespace pv2 {

/// Which entries of an audit are asked for. They are numbered from 1, the oldest.
struct AuditRange {
  /// Only entries with a lower number than this. 0: all entries.
  std::uint64_t before = 0;
  /// At most so many of these, and those are the newest. 0: as many as fit into the answer.
  std::uint64_t limit = 0;
};

/// A page of an audit.
struct RemoteAudit {
  std::vector<AuditEntry> entries{};  ///< Oldest first.
  /// How many entries are older than these. `before = earlier + 1` asks for the next page of them.
  std::uint64_t earlier = 0;
};

}  // namespace pv2
