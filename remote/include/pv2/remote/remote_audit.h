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
  std::uint64_t before = 0;  ///< Only those older than the entry of this number. 0: all.
  std::uint64_t limit = 0;   ///< The newest of these, at most so many. 0: as many as fit.
};

/// A page of an audit.
struct RemoteAudit {
  std::vector<AuditEntry> entries{};  ///< Oldest first.
  /// So many entries are older than these. They are read with `before` as earlier + 1.
  std::uint64_t earlier = 0;
};

}  // namespace pv2
