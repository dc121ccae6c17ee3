// SPDX-License-Identifier: Apache-2.0
//
// Walks over the tree of executions. Links are made when a spawn is published. Every move from one
// member to the next counts as a look, also a move back up to a parent. So a walk over n members
// takes no more than 2n looks, wherever it begins.

#pragma once

#include <pv2/base/assert.h>

#include "model/execution.h"

namespace pv2 {

/// Links `child` as the youngest child of its parent.
inline void link_child(Execution& child) {
  Execution& parent = *child.parent_execution();
  Children& siblings = parent.edit_place().children;
  Siblings& links = child.edit_place().siblings;
  PV2_ASSERT(links.prev == nullptr && siblings.first != &child, "a child is linked once");
  PV2_ASSERT(child.root() == parent.root(), "a child is of the tree of its parent");
  PV2_ASSERT((siblings.first == nullptr) == (siblings.last == nullptr),
             "a parent with an oldest child has a youngest one");
  PV2_ASSERT(siblings.last == nullptr || siblings.last->siblings().next == nullptr,
             "the youngest child has no younger sibling");
  PV2_ASSERT(siblings.last == nullptr || siblings.last->id < child.id,
             "children are linked in order of spawning");
  if (siblings.unexamined == nullptr) siblings.unexamined = &child;  // all older ones were seen
  links.prev = siblings.last;
  (siblings.last != nullptr ? siblings.last->edit_place().siblings.next : siblings.first) = &child;
  siblings.last = &child;
}

/// Takes `child`, which has no children any more, out of the tree.
inline void unlink_child(Execution& child) {
  Children& siblings = child.parent_execution()->edit_place().children;
  const auto [next, prev] = child.siblings();
  if (siblings.unexamined == &child) siblings.unexamined = next;
  PV2_ASSERT(child.first_child() == nullptr, "a member that leaves its tree has no children in it");
  PV2_ASSERT(prev != nullptr || siblings.first == &child,
             "a member that leaves its tree was linked");
  PV2_ASSERT(prev == nullptr || prev->siblings().next == &child,
             "the older sibling of a child is linked to the child");
  PV2_ASSERT(next == nullptr || next->siblings().prev == &child,
             "the younger sibling of a child is linked to the child");
  PV2_ASSERT(next != nullptr || siblings.last == &child,
             "a child without a younger sibling is the youngest");
  (prev != nullptr ? prev->edit_place().siblings.next : siblings.first) = next;
  (next != nullptr ? next->edit_place().siblings.prev : siblings.last) = prev;
  child.edit_place().siblings = {};
}

/// A place on a walk over a member and all its descendants, parents before their children, children
/// in order of spawning. Moves along one link at a time.
class TreeCursor {
 public:
  explicit TreeCursor(Execution& top) noexcept : top_(&top), at_(&top) {}

  /// nullptr: the walk is over.
  [[nodiscard]] Execution* at() const noexcept { return at_; }
  /// Whether the walk comes to at() for the first time, and not back from a child.
  [[nodiscard]] bool arrives() const noexcept { return !from_below_; }
  void move() noexcept {
    PV2_ASSERT(at_ != nullptr, "a walk that moves on is not over");
    Looks::one();
    if (!from_below_ && at_->first_child() != nullptr) {
      at_ = at_->first_child();
    } else if (at_ == top_) {
      at_ = nullptr;
    } else if (at_->siblings().next != nullptr) {
      at_ = at_->siblings().next;
      from_below_ = false;
    } else {
      PV2_ASSERT(!at_->is_root(), "a walk comes back to where it began");
      at_ = at_->parent_execution();
      from_below_ = true;
    }
  }

 private:
  Execution* top_;
  Execution* at_;
  bool from_below_ = false;
};

/// Like TreeCursor, for a range-for in one section.
class Subtree {
 public:
  explicit Subtree(Execution& top) noexcept : top_(top) {}

  struct Iterator {
    TreeCursor cursor;
    Execution& operator*() const noexcept { return *cursor.at(); }
    Iterator& operator++() noexcept {
      do {
        cursor.move();
      } while (cursor.at() != nullptr && !cursor.arrives());
      return *this;
    }
    struct End {};
    bool operator!=(End /*end*/) const noexcept { return cursor.at() != nullptr; }
  };
  [[nodiscard]] Iterator begin() const noexcept { return {TreeCursor(top_)}; }
  [[nodiscard]] Iterator::End end() const noexcept { return {}; }

 private:
  Execution& top_;
};

/// Whether `member` belongs to the domain of `head` or to a domain within it.
inline bool is_within(Execution& member, const Execution& head) noexcept {
  if (head.is_root()) return true;
  Execution* at = member.head();
  while (at != nullptr && at != &head) at = at->outer_domain();
  return at != nullptr;
}

/// The oldest of `members`, all of one tree, that is within the domain of `head` and for which
/// `is_it` is true; or nullptr. Starts at the id of `head`, as ids grow from parent to child.
template <class Test>
Execution* find_within(const std::unique_ptr<MembersById>& members, const Execution& head,
                       Test is_it) {
  if (!members) return nullptr;
  for (auto at = members->lower_bound(head.id); at != members->end(); ++at) {
    Looks::one();
    if (is_within(*at->second, head) && is_it(*at->second)) return at->second;
  }
  return nullptr;
}

/// The next older sibling that the same step spawned; nullptr: there is none.
inline Execution* older_of_spawn(const Execution& child) noexcept {
  Looks::one();
  Execution* const older = child.siblings().prev;
  PV2_ASSERT(older == nullptr || older->parent_execution() == child.parent_execution(),
             "siblings have one parent");
  return older != nullptr && older->place->spawned_at == child.place->spawned_at ? older : nullptr;
}

}  // namespace pv2
