// SPDX-License-Identifier: Apache-2.0
//
// A procedure is placed in its tree; at the end of its section it takes its locks. Whatever is
// wrong with it becomes a problem of its tree.

#include "recovery/loaded_trees.h"

#include <memory>
#include <string>

#include "core/state_lock.h"
#include "model/names.h"
#include "records/nonce_record.h"
#include "records/row_keys.h"
#include "recovery/load_section.h"
#include "tree/domains.h"
#include "tree/ending.h"
#include "tree/join.h"
#include "tree/member_step.h"

namespace pv2 {
namespace {

// nullptr: its parent is not there, or is of another tree.
Execution* parent_of(EngineCore& core, const LoadedProcedure& loaded, ProcedureId id,
                     const Execution* root) PV2_REQUIRES(core.state_mutex) {
  if (!(loaded.parent < id)) return nullptr;
  Execution* const parent = core.find(loaded.parent);
  return parent != nullptr && parent->root() == root ? parent : nullptr;
}

void count_for_its_parent(Execution& child) {
  Execution& above = *child.parent_execution();
  PV2_ASSERT(!is_over(above), "a member of a domain that is over has left, and is not linked");
  const bool ended = child.record.state == ProcedureState::kSuccess || child.record.reported;
  if (!ended) ++above.edit_place().children.unfinished;
}

// What a child that is final on success has spawned is not undone, and only its type says whether
// it is final.
Status may_stay(ProcedureId untyped) {
  return {StatusCode::kNotSupported,
          "it belongs to " + name_of(untyped) +
              ", which has finished and whose type is not registered, so nobody can tell whether "
              "it may have to be undone"};
}

}  // namespace

// Children leave before their parents, so the row of its parent is there.
bool LoadedTrees::has_left(EngineCore& core, const LoadedProcedure& loaded) {
  if (!loaded.parent) return false;
  const ProcedureId id = loaded.execution->id;
  Execution* const parent = loaded.parent < id ? core.find(loaded.parent) : nullptr;
  const bool left = left_.contains(loaded.parent) ||
                    (parent != nullptr && parent->root()->id == loaded.root && is_over(*parent));
  if (left) left_.emplace(id, true);
  return left;
}

ProcedureId LoadedTrees::untyped_above(ProcedureId parent) const {
  const auto at = untyped_.find(parent);
  return at != untyped_.end() ? at->second : ProcedureId();
}

void LoadedTrees::note_untyped(const Execution& execution, ProcedureId above) {
  const bool is_untyped = !execution.is_root() && execution.type == nullptr &&
                          execution.record.state == ProcedureState::kSuccess;
  if (above) {
    untyped_.emplace(execution.id, above);
  } else if (is_untyped) {
    untyped_.emplace(execution.id, execution.id);
  }
}

void LoadedTrees::link(EngineCore& core, LoadedProcedure& loaded) {
  Execution& execution = *loaded.execution.release();  // the table of live executions has it
  PV2_ASSERT(last_linked_ < execution.id, "procedures are linked in order of id");
  last_linked_ = execution.id;
  if (execution.record.deadline) {
    execution.wait.due = later(began_, left_after_restart(*execution.record.deadline,
                                                          execution.record.patience, began_at_));
  }
  core.state.live.emplace(execution.id, &execution);
  place(core, execution, loaded);
  // If its tree fails, the age of its last record says whether its step can have begun.
  const bool matters = !execution.is_root() || execution.inbox;
  if (matters && execution.started) recorded_.emplace(execution.id, loaded.state_sequence);
  const ProcedureId untyped = untyped_above(loaded.parent);
  note_untyped(execution, untyped);
  // The rows of a spent member may have outlived it, and its type may have been retired since.
  if (loaded.problem.ok() && !is_spent(execution)) {
    loaded.problem = std::move(loaded.misfit);
    if (loaded.problem.ok() && untyped) loaded.problem = may_stay(untyped);
  }
  if (!loaded.problem.ok()) add_problem(execution, std::move(loaded.problem));
  if (is_over(execution)) execution.record.holds_locks = false;
  if (execution.locks().empty()) return;
  if (execution.record.holds_locks) return holders_.push_back(execution);
  parked_.push_back(execution, Disposition::kParkUnlock);
}

// The scheduler also learns the lock sets of procedures that held nothing. From then on these sets
// do not change, and a descendant's step may read them. Such a procedure takes nothing, so the
// scheduler may meet it before its ancestors.
void LoadedTrees::restore_locks(EngineCore& core) {
  core.scheduler.settle(EntryList(std::move(parked_)));
  for (const NotRestored& failed : core.scheduler.restore(EntryList(std::move(holders_)))) {
    add_problem(static_cast<Execution&>(*failed.entry),
                failed.why.with_context("restoring its locks"));
  }
}

void LoadedTrees::place(EngineCore& core, Execution& execution, LoadedProcedure& loaded) {
  Execution* const root = root_of(core, execution, loaded);
  Execution* const parent = parent_of(core, loaded, execution.id, root);
  execution.phase.move_to(Phase::kIdle);
  execution.started = may_have_begun(execution, execution.record.holds_locks);
  const bool is_root = loaded.root == execution.id && !loaded.parent;
  const bool has_root = root != nullptr && !is_stand_in(*root);
  if (!is_root && (!has_root || parent == nullptr)) {
    loaded.problem = Status(StatusCode::kCorruption,
                            "it belongs to " + name_of(has_root ? loaded.parent : loaded.root) +
                                ", of which there is no record");
  }
  if (!is_root && root == nullptr) execution.stored = Stored::kTorn;
  // A member without its parent still belongs to its root; the whole tree is frozen.
  execution.belong_to(parent != nullptr ? parent : root);
  adopt(execution);
  if (!execution.is_root()) return count_for_its_parent(execution);
  roots_.push_back(&execution);
  if (!execution.nonce()) return;
  const bool is_new = core.state.submissions.nonces.add(execution.id, *execution.nonce_use);
  if (is_new) return;
  const ProcedureId other = core.state.submissions.nonces.find(execution.nonce())->id;
  loaded.problem =
      Status(StatusCode::kCorruption, "its nonce names " + name_of(other) + " as well");
}

// nullptr: it is a root, or its record names a root that cannot be one.
Execution* LoadedTrees::root_of(EngineCore& core, const Execution& execution,
                                const LoadedProcedure& loaded) {
  const ProcedureId id = loaded.root;
  if (!(id < execution.id)) return nullptr;
  Execution* const found = core.find(id);
  if (found == nullptr) return &stand_in_for(core, id, execution);
  return found->is_root() ? found : nullptr;
}

// The members that are left of a tree without its root are frozen, shown and bypassed as one tree.
Execution& LoadedTrees::stand_in_for(EngineCore& core, ProcedureId id, const Execution& member) {
  PV2_ASSERT(id < member.id, "a root is older than its descendants");
  auto owner = std::make_unique<Execution>();
  Execution& root = *owner;
  root.id = id;
  root.belong_to(nullptr);
  root.stored = Stored::kLost;
  root.names.edit().type = "(lost)";
  root.set_owner(member.owner());  // children have the owner of their parent
  root.submitted = root.record.updated = member.submitted;
  root.record.state = ProcedureState::kWaiting;  // it had children that are not done
  root.phase.move_to(Phase::kIdle);
  adopt(root);
  roots_.push_back(&root);
  core.state.live.emplace(root.id, &root);
  return *owner.release();  // the table of live executions has it
}

FlatMap<ProcedureId, Execution*> LoadedTrees::stand_ins() const {
  FlatMap<ProcedureId, Execution*> found;
  for (Execution* root : roots_) {
    if (is_stand_in(*root)) found.emplace(root->id, root);
  }
  return found;
}

// A root whose record is lost may still be named by the row of its nonce. That row says what the
// record would say of the nonce, and is deleted with the result of the root.
Status LoadedTrees::find_lost_nonces(EngineCore& core) {
  FlatMap<ProcedureId, Execution*> lost = stand_ins();
  if (lost.empty()) return Status();
  std::vector<std::pair<Nonce, KnownNonce>> found;
  const Status status = core.store.scan(Space::kNonce, "", [&](const StoredRow& row) {
    if (Status halted = why_halted(core); !halted.ok()) return halted;
    const auto nonce = parse_nonce_key(row.key);
    const auto record = decode_nonce_record(row.value);
    if (nonce && record.ok() && lost.contains(record->id)) {
      found.emplace_back(*nonce, KnownNonce{record->id, record->fingerprint});
    }
    return Status();
  });
  StateLock lock(core);
  for (const auto& [nonce, entry] : found) {
    OnDemand<NonceUse>& use = lost[entry.id]->nonce_use;
    // Damage: a procedure has one nonce. A submission with this one is found in the store. It is
    // not counted among those that only the store has: no result has it, so it would be counted for
    // ever.
    if (use.is_made()) continue;
    use.edit() = {nonce, entry.fingerprint};
    core.state.submissions.nonces.add(entry.id, *use);
  }
  return status;
}

}  // namespace pv2
