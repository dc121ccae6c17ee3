// SPDX-License-Identifier: Apache-2.0
//
// AuditCounts: what an audit counts while it looks at the members one by one, and the comparison
// with the numbers that heads, roots and the engine keep.

#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "core/engine_core.h"
#include "watch/audit_findings.h"

namespace pv2 {

/// Owned by the audit.
struct AuditCounts {
  /// Counted for one domain or one tree, by its head or root.
  struct OfHead {
    std::size_t flight = 0;
    std::size_t inside = 0;
    std::size_t beyond = 0;
    std::size_t begun = 0;
    std::size_t standing = 0;
    std::size_t at_work = 0;
    std::size_t parked_undos = 0;
    std::size_t awaited = 0;  ///< Members that an order to end all of it waits for.
  };

  std::vector<const Execution*> heads;
  std::vector<const Execution*> planned;  ///< Heads of domains that are being undone.
  std::vector<const Execution*> ordered;  ///< Heads that an order ends when their work has ended.
  std::map<const Execution*, OfHead> by_head;
  /// Members past their point of no return, by their nearest ancestor that is final on success.
  std::map<const Execution*, std::size_t> beyond_below;
  std::map<const Execution*, std::size_t> turns;  ///< Undos that are planned, by member.
  std::size_t children_linked = 0;                ///< In the lists of their parents.
  std::size_t children_live = 0;
  std::size_t in_flight = 0;

  [[nodiscard]] OfHead of(const Execution& head) const;
  /// Compares the children in the parents' lists with the live children. They always agree.
  void compare_children(AuditFindings& findings) const;
  /// Compares the other counts. They agree only while the engine is calm.
  void compare(const EngineState& state, AuditFindings& findings) const;

 private:
  void compare_domains(AuditFindings& findings) const;
  void compare_trees(AuditFindings& findings) const;
  void compare_rollbacks(const EngineState& state, AuditFindings& findings) const;
  void compare_engine(const EngineState& state, AuditFindings& findings) const;
};

}  // namespace pv2
