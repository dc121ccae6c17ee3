// SPDX-License-Identifier: Apache-2.0
//
// The order within adopt(): everything that can be refused (fields, sizes, room, ids, locks) comes
// before the first row is written and before the scheduler learns of a child.

#include "steps/spawned_children.h"

#include <fmt/format.h>
#include <pv2/scheduler/lock_upgrade.h>

#include <algorithm>
#include <utility>

#include "core/state_lock.h"
#include "model/check_limits.h"
#include "pv2/engine/executor_options.h"
#include "pv2/engine/procedure_registry.h"
#include "records/object_codec.h"
#include "records/procedure_rows.h"
#include "steps/step_frame.h"
#include "tree/members_at_work.h"

namespace pv2 {

void SpawnedChildren::spawn(const ProcedureType& type, std::unique_ptr<Procedure> object,
                            SpawnOptions options) {
  spawned_.push_back({&type, std::move(object), options});
}

Status SpawnedChildren::adopt() {
  PV2_ASSERT(!spawned_.empty(), "a step that adopts children has spawned some");
  const EntryLocks& locks = frame_.execution.locks();
  // Decided once, for all children and for the record: has_work() may change before the record is
  // made.
  covered_ = locks.empty() || locks.scope() == LockScope::kOperation || frame_.has_work();
  Status status = make_children();
  if (!status.ok()) return status;
  const std::vector<Execution*>& children = frame_.commit.rare.edit().children;
  status = reserve_ids();
  for (std::size_t i = 0; status.ok() && i < children.size(); ++i) {
    status = check_no_upgrade(*children[i]);
  }
  if (status.ok()) insert_children();
  return status;
}

Status SpawnedChildren::make_children() {
  Execution& parent = frame_.execution;
  std::size_t bytes = 0;  // of the fields of all children
  // A single concurrent child has no sibling with which it could be undone at the same time.
  const auto concurrent = std::count_if(
      spawned_.begin(), spawned_.end(),
      [](const Spawned& spawned) { return spawned.options.undo_order == UndoOrder::kConcurrent; });
  for (Spawned& spawned : spawned_) {
    auto child = std::make_unique<Execution>();
    child->type = spawned.type;
    child->set_owner(parent.owner());
    child->submitted = frame_.now;
    child->edit_place().spawned_at = parent.record.visits + 1;
    child->on_failure = spawned.options.on_failure;
    if (concurrent > 1) child->undo_order = spawned.options.undo_order;
    child->belong_to(&parent);
    child->record.step = spawned.type->steps.front().number;
    Status described = describe_new(*spawned.object, *child, frame_.scratch);
    if (!described.ok()) return described;
    bytes += child->arguments.size() + child->record.image.size();
    if (bytes > record_bytes_max(frame_.core.store_limits)) {
      return frame_.too_large("what is spawned by step", bytes);
    }
    frame_.core.count_for_its_type(*child);
    child->object = std::move(spawned.object);
    PV2_ASSERT(child->root() == parent.root() && child->parent_execution() == &parent,
               "a child is in the tree of its parent");
    frame_.commit.rare.edit().children.push_back(child.release());
  }
  spawned_.clear();
  return Status();
}

// Counts the children as live, and gives them their ids.
Status SpawnedChildren::reserve_ids() {
  EngineCore& core = frame_.core;
  RareOfStep& rare = frame_.commit.rare.edit();
  const std::vector<Execution*>& children = rare.children;
  StateLock lock(core, Width::kNarrow);
  const std::size_t most = core.options.max_live_procedures;
  const std::size_t others = core.state.live.size() + core.state.spawning;
  if (others + children.size() > most) {
    may_find_room_ = children.size() < most;
    return no_room(others);
  }
  const auto first_id = core.state.ids.allocate(children.size());
  if (!first_id.ok()) return first_id.status();
  core.state.spawning += rare.reserved = children.size();
  for (std::size_t i = 0; i < children.size(); ++i) {
    children[i]->id = ProcedureId{first_id->value + i};
  }
  return Status();
}

void SpawnedChildren::insert_children() {
  PV2_ASSERT(frame_.commit.rare->reserved == frame_.commit.rare->children.size(),
             "children are counted as live before they are inserted");
  Transition first;
  for (Execution* child : frame_.commit.rare->children) {
    // If the parent gives its locks back with this record, they cover no child: the children queue
    // for their own locks.
    child->record.holds_locks =
        covered_ ? frame_.core.scheduler.admit(*child) : child->locks().empty();
    first.begin(child->record, frame_.now);
    first.state = ProcedureState::kRunnable;
    insert_rows(*child, first, frame_.commit.batch);
  }
}

Status SpawnedChildren::no_room(std::size_t others) const {
  return {StatusCode::kResourceExhausted,
          fmt::format("step {} spawns {} children, and {} procedures are live; the limit is {} "
                      "(max_live_procedures)",
                      frame_.name(), frame_.commit.rare->children.size(), others,
                      frame_.core.options.max_live_procedures)};
}

void SpawnedChildren::abandon() {
  EngineCore& core = frame_.core;
  spawned_.clear();
  if (!frame_.commit.rare.is_made()) return;
  RareOfStep& rare = frame_.commit.rare.edit();
  if (rare.reserved != 0) {
    StateLock lock(core, Width::kNarrow);
    PV2_ASSERT(core.state.spawning >= rare.reserved,
               "children were counted when they got their ids");
    core.state.spawning -= std::exchange(rare.reserved, 0);
  }
  for (Execution* child : rare.children) {
    const std::unique_ptr<Execution> owned(child);
    if (child->id) {
      EntryList one;
      one.push_back(*child, Disposition::kComplete);
      core.scheduler.settle(std::move(one));
    }
    child->object.reset();
  }
  rare.children.clear();
}

}  // namespace pv2
