// SPDX-License-Identifier: Apache-2.0
//
// Relatives of a record are found by the root that its header names, or guessed by its id.

#include "recovery/set_aside_records.h"

#include <string>
#include <utility>

#include "core/effects.h"
#include "model/names.h"
#include "model/tree_walk.h"

namespace pv2 {
namespace {

std::string locks_of(const UnreadableRecord& record) {
  if (record.locks.empty()) return "which locks it held is not known";
  std::string locks = "it may have held";
  for (const LockRequest& request : record.locks.requests()) locks += " " + to_string(request.key);
  return locks;
}

// Parents of which at least one child of the last spawn is linked.
FlatMap<ProcedureId, bool> parents_with_children(const std::vector<Execution*>& roots) {
  FlatMap<ProcedureId, bool> parents;
  for (Execution* root : roots) {
    for (const Execution& member : Subtree(*root)) {
      if (&member == root) continue;
      const Execution& parent = *member.parent_execution();
      if (member.place->spawned_at == parent.record.visits) parents.emplace(parent.id, true);
    }
  }
  return parents;
}

}  // namespace

void set_aside(EngineCore& core, std::vector<UnreadableRecord> records) {
  for (UnreadableRecord& record : records) {
    const ProcedureId id = record.id;
    core.state.unreadable.try_emplace(id, std::move(record));
  }
}

// A readable header names the root. Without one, the ids are a guess
// (docs/decisions/0017-kept-after-review.md): the children of one spawn have consecutive ids, and a
// parent that waits for children has some. If a child had ended, and no other child of its spawn
// can be read, its parent does not miss it after the parent's next record.
void freeze_relatives(EngineCore& core, LoadedTrees& trees) {
  if (core.state.unreadable.empty()) return;
  const auto freeze = [&](Execution* relative, ProcedureId member) {
    if (relative == nullptr) return;
    trees.add_problem(*relative, Status(StatusCode::kCorruption,
                                        name_of(member) + ", which is or may be part of its "
                                                          "tree, cannot be read and was set "
                                                          "aside"));
  };
  const auto child = [&](std::uint64_t id) PV2_REQUIRES(core.state_mutex) -> Execution* {
    Execution* const found = core.find(ProcedureId{id});
    return found != nullptr && !found->is_root() ? found : nullptr;
  };
  std::uint64_t below = 0;  // the id before a run of consecutive ids that are set aside
  ProcedureId last;
  for (const auto& [id, record] : core.state.unreadable) {
    if (Execution* const found = core.find(id)) {
      found->stored = Stored::kUnreadable;  // the stand-in for a root
    }
    if (record.root && record.root != id) freeze(core.find(record.root), id);
    if (record.root || !id) continue;
    if (!last || id.value != last.value + 1) below = id.value - 1;
    last = id;
    freeze(child(below), id);
    freeze(child(id.value + 1), id);
  }
  if (!last) return;
  const FlatMap<ProcedureId, bool> has_children = parents_with_children(trees.roots());
  for (Execution& execution : core.state.live) {
    const bool waits =
        execution.record.state == ProcedureState::kWaiting && !is_stand_in(execution);
    const bool has_child = has_children.contains(execution.id);
    if (waits && !has_child && execution.id < last) freeze(&execution, last);
  }
}

void tell_of_set_aside(EngineCore& core, Effects& effects) {
  for (const auto& [id, record] : core.state.unreadable) {
    effects.log(LogLevel::kError,
                name_of(id) + " is set aside, as it cannot be read: " + record.why.to_string() +
                    "; " + locks_of(record) + ", and nothing is locked for it");
  }
}

}  // namespace pv2
