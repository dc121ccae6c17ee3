// SPDX-License-Identifier: Apache-2.0
//
// Read restart() first: what is known of a tree only when all of its members are linked.

#include "recovery/restarted_trees.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/effects.h"
#include "core/state_lock.h"
#include "model/names.h"
#include "model/tree_walk.h"
#include "records/row_keys.h"
#include "recovery/load_section.h"
#include "tree/domains.h"
#include "tree/ending.h"
#include "tree/failure.h"
#include "tree/resume.h"

namespace pv2 {
namespace {

// A signal that came after its member had succeeded counts only if the member was to be undone by
// then: the signal says so, or a failure was durable before it.
void drop_late_signals(Execution& root, Effects& effects) {
  auto garbage = std::make_unique<GarbageCommit>();
  const auto drop = [&](Execution& member) {
    if (!member.inbox) return;
    member.inbox->consume_if([&](const InboxMessage& message) {
      const bool counts = message.to_undo || failed_before(member, message.sequence);
      if (!message.late || counts) return false;
      garbage->rows.push_back(inbox_key(member.id, message.number));
      return true;
    });
  };
  for (Execution& member : Subtree(root)) drop(member);
  if (!garbage->rows.empty()) effects.garbage.push_back(std::move(garbage));
}

// Whether the record of `parent` can be true: in a tree that goes forward, a parent of children
// that are not done waits for them.
bool join_makes_sense(Execution& parent) {
  const bool waits = parent.record.state == ProcedureState::kWaiting;
  return parent.children().unfinished == 0 || waits || is_over(parent) ||
         failing_domain(parent) != nullptr;
}

// False: a join made no sense, and the tree is quarantined.
bool check_joins(EngineCore& core, Execution& root, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  for (Execution& member : Subtree(root)) {
    if (join_makes_sense(member)) continue;
    quarantine_tree(
        core, root,
        Status(StatusCode::kCorruption, name_of(member.id) + " is " +
                                            std::string(to_string(member.record.state)) +
                                            ", but it has children that are not done"),
        effects);
    return false;
  }
  return true;
}

void restart(EngineCore& core, Execution& root,
             const FlatMap<ProcedureId, CommitSequence>& recorded, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  if (root.is_quarantined()) return;
  drop_all_ended(core, root, effects);
  find_failures(root);
  forget_what_had_not_begun(root, recorded);
  drop_late_signals(root, effects);
  if (check_joins(core, root, effects)) start_domain(core, root, effects);
}

}  // namespace

void quarantine_problems(EngineCore& core, const LoadedTrees& trees, Effects& effects) {
  for (const auto& [member, why] : trees.problems()) {
    quarantine_tree(core, *member->root(), why.with_context(name_of(member->id)), effects);
  }
}

// What holds locks goes first. Nobody else touches a root before it goes on.
Status restart_trees(EngineCore& core, LoadedTrees& trees, Effects& effects) {
  std::vector<Execution*>& roots = trees.roots();
  std::stable_partition(roots.begin(), roots.end(),
                        [](const Execution* root) { return root->holds_locks(); });
  for (std::size_t at = 0; at < roots.size();) {
    if (Status halted = why_halted(core); !halted.ok()) return halted;
    const std::size_t end = std::min(roots.size(), at + kLoadSection);
    StateLock lock(core);
    do {
      restart(core, *roots[at++], trees.recorded(), effects);
    } while (at < end && core.looks.have_room());
    end_load_section(core);
  }
  return Status();
}

}  // namespace pv2
