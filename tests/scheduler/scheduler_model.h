// SPDX-License-Identifier: Apache-2.0
//
// SchedulerModel: the rules of docs/scheduling.md written down as slowly and plainly as possible:
// every question is answered by looking at all entries. No index, no counter of holders, no early
// end. The model test compares the real schedulers with it; what this file says is what they have
// to do.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/resource.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "test_entry.h"

namespace pv2::test {

enum class Where { kUnknown, kOut, kWaiting, kReady };

struct ModelEntry {
  std::unique_ptr<TestEntry> real;
  LockSet locks;
  ModelEntry* parent = nullptr;
  Where where = Where::kUnknown;
  bool holds = false;
  bool granted_in_queue = false;
  bool granted_by_poll = false;
  bool polled = false;  // and not settled since
  std::uint64_t ticket = 0;
  std::set<ResourceKey> exempt;  // limited keys that an ancestor counts for
  int rank = 0;                  // its own, or a larger one that was lent
  int queued_rank = 0;
  bool queued_in_front = false;
  int live_children = 0;
  ModelEntry* waits_for = nullptr;  // as was reported
  bool for_its_turn = false;        // in the rollback of that one
};

struct ModelLane {
  ResourceKey entity;
  std::deque<ModelEntry*> front, back;
  std::uint32_t front_run = 0;

  [[nodiscard]] bool empty() const { return front.empty() && back.empty(); }
};

struct ModelLevel {
  std::deque<ModelLane> ring;
  std::uint32_t passed_over = 0;
};

struct ModelClass {
  std::map<int, ModelLevel> levels;  // by minus the priority: the first is the highest
  std::uint32_t passed_over = 0;
};

class SchedulerModel {
 public:
  enum class Kind { kSimple, kMaster };
  SchedulerModel(Kind kind, std::uint32_t bound) : kind_(kind), bound_(bound) {}

  void add(ModelEntry& entry) { all_.push_back(&entry); }

  bool admit(ModelEntry& e) { return lock(e, UINT64_MAX); }
  bool restore(ModelEntry& e) { return lock(e, 0); }

  void settle(ModelEntry& e, Disposition disposition) {
    know(e);
    e.polled = false;
    if (disposition == Disposition::kReturn) return put_back(e);
    e.granted_by_poll = false;
    const bool unlocks = disposition == Disposition::kParkUnlock ||
                         disposition == Disposition::kBackUnlock ||
                         disposition == Disposition::kComplete;
    if (unlocks) e.holds = false;
    serve();
    if (disposition == Disposition::kComplete) {
      e.where = Where::kUnknown;
      e.waits_for = nullptr;
      for (ModelEntry* other : all_) {
        if (other->waits_for == &e) other->waits_for = nullptr;
      }
      all_.erase(std::find(all_.begin(), all_.end(), &e));
      move_reranked();
    } else if (disposition == Disposition::kFront) {
      enqueue(e, true);
    } else if (disposition == Disposition::kBack || disposition == Disposition::kBackUnlock) {
      enqueue(e, false);
    }
  }

  bool withdraw(ModelEntry& e) {
    if (e.where != Where::kWaiting && e.where != Where::kReady) return false;
    if (e.where == Where::kReady) {
      remove_ready(e);
      if (e.granted_in_queue) e.holds = false;
    }
    e.where = Where::kOut;
    e.granted_in_queue = false;
    serve();
    return true;
  }

  void set_limit(const ResourceKey& key, std::optional<std::uint32_t> limit) {
    limits_.erase(key);
    if (limit) limits_[key] = *limit;
    serve();
  }

  void report_wait(ModelEntry& waiter, ModelEntry& producer, WaitLink::Why why) {
    know(waiter);
    know(producer);
    waiter.waits_for = &producer;
    waiter.for_its_turn = why == WaitLink::Why::kTurn;
    serve();
  }
  void end_reported_wait(ModelEntry& waiter) {
    waiter.waits_for = nullptr;
    move_reranked();
  }

  /// The waiters that can never go on if all others, and those in `going_on`, do.
  [[nodiscard]] std::set<const ModelEntry*> stuck(
      const std::set<const ModelEntry*>& going_on = {}) const {
    std::set<const ModelEntry*> stuck;
    for (const ModelEntry* e : all_) {
      if (e->where != Where::kWaiting && e->waits_for == nullptr) continue;
      for (const ModelEntry* a = e; a != nullptr; a = a->parent) stuck.insert(a);
    }
    std::erase_if(stuck, [&](const ModelEntry* e) { return going_on.contains(e); });
    while (std::erase_if(stuck, [&](const ModelEntry* e) { return !is_held_up(*e, stuck); }) != 0) {
    }
    return stuck;
  }

  /// Whether an entry of a higher class than the one that `e` was polled in can run.
  [[nodiscard]] bool is_overtaken(const ModelEntry& e) const {
    return !classes_.empty() && 255 - classes_.begin()->first > e.queued_rank / 256;
  }

  /// How many entries of the same resource and rank are before `e`, which can run.
  [[nodiscard]] std::size_t ahead_of(const ModelEntry& e) const {
    for (const auto& [cls, levels] : classes_) {
      for (const auto& [level, lanes] : levels.levels) {
        for (const ModelLane& lane : lanes.ring) {
          std::vector<const ModelEntry*> all(lane.front.begin(), lane.front.end());
          all.insert(all.end(), lane.back.begin(), lane.back.end());
          const auto at = std::find(all.begin(), all.end(), &e);
          if (at != all.end()) return static_cast<std::size_t>(at - all.begin());
        }
      }
    }
    return SIZE_MAX;
  }

  /// Whether an entry that `e` would not pass waits for a key of `e`, or for its place.
  [[nodiscard]] bool contended(const ModelEntry& e) const {
    if (passes_waiters(e)) return false;
    const auto& requests = e.locks.requests();
    return std::any_of(requests.begin(), requests.end(), [&](const LockRequest& request) {
      std::uint64_t places = 0;  // that are taken or waited for
      std::uint64_t waiters = 0;
      for (const ModelEntry* other : all_) {
        const LockRequest* theirs = find(*other, request.key);
        if (theirs == nullptr) continue;
        const bool waits = other != &e && other->where == Where::kWaiting;
        if (waits && exclude(theirs->mode, request.mode)) return true;
        waiters += waits ? 1 : 0;
        places += waits || (other->holds && !other->exempt.contains(request.key)) ? 1 : 0;
      }
      const auto limit = limits_.find(request.key);
      const bool has_a_place = e.holds && !e.exempt.contains(request.key);
      return has_a_place && waiters != 0 && limit != limits_.end() && limit->second != 0 &&
             places > limit->second;
    });
  }

  /// Whether `waiter` waits for `awaited` because of `why`, at `key` if it waits in line.
  [[nodiscard]] bool waits_for(const ModelEntry& waiter, const ModelEntry& awaited,
                               WaitLink::Why why, const ResourceKey& key) const {
    switch (why) {
      case WaitLink::Why::kChild:
        return waits_for_child(waiter, awaited);
      case WaitLink::Why::kReported:
      case WaitLink::Why::kTurn:
        return waiter.waits_for == &awaited && waiter.for_its_turn == (why == WaitLink::Why::kTurn);
      case WaitLink::Why::kHolder:
      case WaitLink::Why::kAhead:
      case WaitLink::Why::kLimit:
        break;
    }
    const LockRequest* const mine = find(waiter, key);
    const LockRequest* const theirs = find(awaited, key);
    if (waiter.where != Where::kWaiting || mine == nullptr || theirs == nullptr) return false;
    const bool is_ahead = awaited.where == Where::kWaiting && awaited.ticket < waiter.ticket &&
                          !passes_waiters(waiter);
    const bool excluded = exclude(mine->mode, theirs->mode);
    if (why == WaitLink::Why::kAhead) return excluded && is_ahead;
    if (why == WaitLink::Why::kHolder) {
      return excluded && awaited.holds && !covered(waiter, key, mine->mode);
    }
    const bool has_a_place = awaited.holds && !awaited.exempt.contains(key);
    return limits_.contains(key) && !ancestor_holds(waiter, key) && (has_a_place || is_ahead);
  }

  enum class For { kAnybody, kReserved };
  std::vector<ModelEntry*> poll(std::size_t limit, For worker = For::kAnybody) {
    const bool only_top = worker == For::kReserved && kind_ == Kind::kMaster;
    const int end = only_top ? 2 : INT_MAX;  // globals and meta are the top
    std::vector<ModelEntry*> run;
    int run_class = -1;
    while (run.size() < limit && !classes_.empty()) {
      const int cls = pick(classes_, end);
      if (cls >= end || (!run.empty() && cls != run_class)) break;
      run_class = cls;
      pass_over(classes_, cls);
      auto& levels = classes_[cls].levels;
      const int level = pick(levels);
      pass_over(levels, level);
      auto& ring = levels[level].ring;
      ModelLane lane = ring.front();
      ring.pop_front();
      run.push_back(pop(lane));
      if (!lane.empty()) ring.push_back(lane);
      if (ring.empty()) levels.erase(level);
      if (levels.empty()) classes_.erase(cls);
    }
    for (ModelEntry* e : run) {
      e->where = Where::kOut;
      e->polled = true;
      e->granted_by_poll = e->granted_in_queue;
      e->granted_in_queue = false;
    }
    return run;
  }

  [[nodiscard]] std::size_t count(Where where) const {
    return static_cast<std::size_t>(
        std::count_if(all_.begin(), all_.end(), [&](auto* e) { return e->where == where; }));
  }

  /// The holders (by id) and the waiters (by arrival) of each key that has any.
  [[nodiscard]] std::map<ResourceKey, std::pair<Ids, Ids>> locks() const {
    std::map<ResourceKey, std::pair<Ids, Ids>> result;
    std::vector<ModelEntry*> order = all_;
    std::sort(order.begin(), order.end(), [](auto* a, auto* b) {
      return std::pair(a->where == Where::kWaiting ? a->ticket : 0, a->real->id.value) <
             std::pair(b->where == Where::kWaiting ? b->ticket : 0, b->real->id.value);
    });
    for (ModelEntry* e : order) {
      for (const LockRequest& request : e->locks.requests()) {
        if (e->holds) result[request.key].first.push_back(e->real->id.value);
        if (e->where == Where::kWaiting) result[request.key].second.push_back(e->real->id.value);
      }
    }
    return result;
  }

 private:
  static bool no_locks(const ModelEntry& e) { return e.locks.empty(); }

  static const LockRequest* find(const ModelEntry& e, const ResourceKey& key) {
    for (const LockRequest& request : e.locks.requests()) {
      if (request.key == key) return &request;
    }
    return nullptr;
  }

  static bool exclude(LockMode a, LockMode b) {
    return a == LockMode::kExclusive || b == LockMode::kExclusive;
  }

  // Descendants of holders pass waiters, and so does an undo while others wait for their turn in
  // the same rollback.
  [[nodiscard]] bool passes_waiters(const ModelEntry& e) const {
    bool passes = false;
    for (const ModelEntry* a = &e; a != nullptr; a = a->parent) {
      passes |= a != &e && a->holds;
      for (const ModelEntry* other : all_) passes |= other->waits_for == a && other->for_its_turn;
    }
    return passes;
  }

  [[nodiscard]] static bool covered(const ModelEntry& e, const ResourceKey& key, LockMode mode) {
    bool covered = false;
    for (ModelEntry* a = e.parent; a != nullptr; a = a->parent) {
      const LockRequest* of_ancestor = find(*a, key);
      covered |= a->holds && of_ancestor != nullptr && of_ancestor->mode >= mode;
    }
    return covered;
  }

  // An entry in line waits for that first. An entry that waits for its turn in a rollback blocks
  // its ancestors only through the entry whose turn it is.
  [[nodiscard]] static bool waits_for_child(const ModelEntry& waiter, const ModelEntry& child) {
    if (child.waits_for != nullptr && child.for_its_turn) return false;
    for (const ModelEntry* a = child.parent; a != nullptr; a = a->parent) {
      if (a->where == Where::kWaiting) return false;
      if (a == &waiter) return true;
      if (a->waits_for == nullptr || !a->for_its_turn) return false;
    }
    return false;
  }

  [[nodiscard]] bool may_take(const ModelEntry& e, std::uint64_t ticket) const {
    const bool passes = passes_waiters(e);
    for (const LockRequest& request : e.locks.requests()) {
      const bool is_covered = covered(e, request.key, request.mode);
      for (const ModelEntry* other : all_) {
        const LockRequest* theirs = find(*other, request.key);
        if (theirs == nullptr || !exclude(theirs->mode, request.mode)) continue;
        if (other->holds && !is_covered) return false;
        const bool ahead = other->where == Where::kWaiting && other->ticket < ticket;
        if (ahead && !passes) return false;
      }
      if (!has_place(e, request.key, ticket, passes)) return false;
    }
    return true;
  }

  [[nodiscard]] bool has_place(const ModelEntry& e, const ResourceKey& key, std::uint64_t ticket,
                               bool passes) const {
    const auto limit = limits_.find(key);
    if (limit == limits_.end() || ticket == 0 || ancestor_holds(e, key)) return true;
    std::uint32_t before = 0;
    for (const ModelEntry* other : all_) {
      if (find(*other, key) == nullptr) continue;
      if (other->holds && !other->exempt.contains(key)) ++before;
      if (!passes && other->where == Where::kWaiting && other->ticket < ticket) ++before;
    }
    return before < limit->second;
  }

  static bool ancestor_holds(const ModelEntry& e, const ResourceKey& key) {
    for (const ModelEntry* a = e.parent; a != nullptr; a = a->parent) {
      if (a->holds && find(*a, key) != nullptr) return true;
    }
    return false;
  }

  [[nodiscard]] bool is_held_up(const ModelEntry& e,
                                const std::set<const ModelEntry*>& stuck) const {
    if (e.waits_for != nullptr && stuck.contains(e.waits_for)) return true;
    if (e.where != Where::kWaiting) return has_stuck_child(e, stuck);
    const bool passes = passes_waiters(e);
    for (const LockRequest& request : e.locks.requests()) {
      const bool is_covered = covered(e, request.key, request.mode);
      const auto limit = limits_.find(request.key);
      std::uint32_t places_stuck = 0;
      for (const ModelEntry* other : stuck) {
        const LockRequest* theirs = find(*other, request.key);
        if (theirs == nullptr || other == &e) continue;
        const bool ahead = other->where == Where::kWaiting && other->ticket < e.ticket;
        if (exclude(theirs->mode, request.mode) && other->holds && !is_covered) return true;
        if (exclude(theirs->mode, request.mode) && ahead && !passes) return true;
        places_stuck += other->holds && !other->exempt.contains(request.key);
        places_stuck += ahead && !passes;
      }
      if (limit != limits_.end() && limit->second != 0 && !ancestor_holds(e, request.key) &&
          places_stuck >= limit->second) {
        return true;
      }
    }
    return false;
  }

  // An entry that only waits for its turn in a rollback blocks no other, but the one in turn may be
  // below it.
  static bool has_stuck_child(const ModelEntry& e, const std::set<const ModelEntry*>& stuck) {
    return std::any_of(stuck.begin(), stuck.end(), [&](auto* s) {
      if (s->parent != &e) return false;
      return s->waits_for == nullptr || !s->for_its_turn || has_stuck_child(*s, stuck);
    });
  }

  bool lock(ModelEntry& e, std::uint64_t ticket) {
    know(e);
    if (!e.holds && !no_locks(e)) take(e, ticket);
    serve();
    return e.holds || no_locks(e);
  }

  void know(ModelEntry& e) {
    if (e.where != Where::kUnknown) return;
    e.where = Where::kOut;
    move_reranked();
  }

  bool take(ModelEntry& e, std::uint64_t ticket) {
    e.holds = may_take(e, ticket);
    e.exempt.clear();
    if (!e.holds) return false;
    for (const LockRequest& request : e.locks.requests()) {
      if (ancestor_holds(e, request.key)) e.exempt.insert(request.key);
    }
    return true;
  }

  // Grants what can be granted, in order of arrival, and puts every entry in its place.
  void serve(ModelEntry* first = nullptr, bool front = false) {
    std::vector<ModelEntry*> granted;
    while (true) {
      ModelEntry* next = nullptr;
      for (ModelEntry* e : all_) {
        if (e->where == Where::kWaiting && may_take(*e, e->ticket) &&
            (next == nullptr || e->ticket < next->ticket)) {
          next = e;
        }
      }
      if (next == nullptr) break;
      take(*next, next->ticket);
      next->granted_in_queue = true;
      next->where = Where::kOut;
      granted.push_back(next);
    }
    rank_all();
    if (first != nullptr) push_ready(*first, front);
    for (ModelEntry* e : granted) push_ready(*e, true);
    move_reranked();
  }

  void enqueue(ModelEntry& e, bool front) {
    if (!e.holds && !no_locks(e)) {
      if (!take(e, UINT64_MAX)) {
        e.where = Where::kWaiting;
        e.ticket = ++last_ticket_;
        return move_reranked();
      }
      e.granted_in_queue = true;
    }
    serve(&e, front);
  }

  // ---- Ranks: the largest of the entry's own, its parent's, and those of its waiters.

  void rank_all() {
    for (ModelEntry* e : all_) e->rank = own_rank(*e);
    for (bool changed = true; changed;) {
      changed = false;
      for (ModelEntry* e : all_) {
        const int lent = lent_to(*e);
        if (e->where == Where::kUnknown || lent <= e->rank) continue;
        e->rank = lent;
        changed = true;
      }
    }
  }

  [[nodiscard]] int lent_to(const ModelEntry& e) const {
    int lent = 0;
    if (e.parent != nullptr && e.parent->where != Where::kUnknown) lent = e.parent->rank;
    for (const ModelEntry* waiter : all_) {
      if (waiter->waits_for == &e) lent = std::max(lent, waiter->rank);
      if (waiter->where != Where::kWaiting) continue;
      const bool behind = e.holds || (e.where == Where::kWaiting && e.ticket < waiter->ticket);
      for (const LockRequest& request : e.locks.requests()) {
        const LockRequest* theirs = find(*waiter, request.key);
        if (!behind || theirs == nullptr) continue;
        if (exclude(theirs->mode, request.mode) || limits_.contains(request.key)) {
          lent = std::max(lent, waiter->rank);
        }
      }
    }
    return lent;
  }

  [[nodiscard]] int own_rank(const ModelEntry& e) const {
    if (kind_ == Kind::kSimple) return 0;
    return (255 - class_of(e)) * 256 + static_cast<int>(e.real->priority);
  }

  void move_reranked() {
    rank_all();
    std::vector<ModelEntry*> by_id = all_;
    std::sort(by_id.begin(), by_id.end(),
              [](auto* a, auto* b) { return a->real->id < b->real->id; });
    for (ModelEntry* e : by_id) {
      if (e->where != Where::kReady || e->rank == e->queued_rank) continue;
      remove_ready(*e);
      push_ready(*e, e->queued_in_front);
    }
  }

  // ---- The order of what can run.

  [[nodiscard]] int class_of(const ModelEntry& e) const {
    if (kind_ == Kind::kSimple) return 0;
    if (no_locks(e)) return 5;
    switch (e.locks.primary().cls) {
      case ResourceClass::kGlobal:
        return 0;
      case ResourceClass::kMeta:
        return 1;
      case ResourceClass::kServer:
        return 2;
      case ResourceClass::kPeer:
        return 3;
      case ResourceClass::kNamespace:
      case ResourceClass::kTable:
      case ResourceClass::kRegion:
        return 4;
      case ResourceClass::kType:
      case ResourceClass::kHostFirst:
        break;
    }
    return 5;
  }

  void push_ready(ModelEntry& e, bool front) {
    e.where = Where::kReady;
    e.queued_rank = e.rank;
    e.queued_in_front = front;
    const ResourceKey entity = kind_ == Kind::kSimple ? ResourceKey() : e.locks.primary();
    auto& ring = classes_[255 - e.rank / 256].levels[-(e.rank % 256)].ring;
    auto at = std::find_if(ring.begin(), ring.end(),
                           [&](const ModelLane& lane) { return lane.entity == entity; });
    if (at == ring.end()) at = ring.insert(ring.end(), ModelLane{entity, {}, {}, 0});
    (front ? at->front : at->back).push_back(&e);
  }

  void put_back(ModelEntry& e) {
    rank_all();
    e.granted_in_queue = e.granted_by_poll;
    e.granted_by_poll = false;
    push_ready(e, e.queued_in_front);
    auto& ring = classes_[255 - e.rank / 256].levels[-(e.rank % 256)].ring;
    const auto at = std::find_if(ring.begin(), ring.end(), [&](const ModelLane& lane) {
      const auto& section = e.queued_in_front ? lane.front : lane.back;
      return !section.empty() && section.back() == &e;
    });
    std::rotate(ring.begin(), at, std::next(at));
    auto& section = e.queued_in_front ? ring.front().front : ring.front().back;
    std::rotate(section.begin(), std::prev(section.end()), section.end());
  }

  void remove_ready(ModelEntry& e) {
    for (auto cls = classes_.begin(); cls != classes_.end(); ++cls) {
      auto& levels = cls->second.levels;
      for (auto level = levels.begin(); level != levels.end(); ++level) {
        auto& ring = level->second.ring;
        for (auto lane = ring.begin(); lane != ring.end(); ++lane) {
          if (std::erase(lane->front, &e) + std::erase(lane->back, &e) == 0) continue;
          if (lane->back.empty()) lane->front_run = 0;
          if (lane->empty()) ring.erase(lane);
          if (ring.empty()) levels.erase(level);
          if (levels.empty()) classes_.erase(cls);
          return;
        }
      }
    }
  }

  template <class Slots>
  int pick(const Slots& slots, int end = INT_MAX) const {
    for (auto slot = std::next(slots.begin()); bound_ != 0 && slot != slots.end(); ++slot) {
      if (slot->first >= end) break;
      if (slot->second.passed_over >= bound_) return slot->first;
    }
    return slots.begin()->first;
  }

  template <class Slots>
  static void pass_over(Slots& slots, int served) {
    for (auto& [number, slot] : slots) {
      if (number == served) slot.passed_over = 0;
      if (number > served) ++slot.passed_over;
    }
  }

  ModelEntry* pop(ModelLane& lane) const {
    const bool overdue = bound_ != 0 && lane.front_run >= bound_ && !lane.back.empty();
    auto& section = lane.front.empty() || overdue ? lane.back : lane.front;
    lane.front_run = &section == &lane.front && !lane.back.empty() ? lane.front_run + 1 : 0;
    ModelEntry* e = section.front();
    section.pop_front();
    if (lane.back.empty()) lane.front_run = 0;
    return e;
  }

  Kind kind_;
  std::uint32_t bound_;
  std::uint64_t last_ticket_ = 0;
  std::vector<ModelEntry*> all_;
  std::map<ResourceKey, std::uint32_t> limits_;
  std::map<int, ModelClass> classes_;
};

}  // namespace pv2::test
