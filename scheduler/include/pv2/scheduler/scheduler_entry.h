// SPDX-License-Identifier: Apache-2.0
//
// SchedulerEntry: what a scheduler orders. The engine derives its execution record from it; the
// scheduler sees an id, an ancestor chain, a lock set and a priority, and does not know what runs.
// The entry's owner keeps it alive from admit() or restore() until the settle() that completes it
// has returned.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/clock.h>
#include <pv2/base/ids.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "pv2/scheduler/entry_locks.h"
#include "pv2/scheduler/priority.h"

namespace pv2 {

class LockTable;
class LockingScheduler;
class ReadyLane;

/// What settle() does with an entry, from the outcome of its last step. An entry that waits for
/// something and keeps its locks is not settled: it was polled and stays out of the queues.
enum class Disposition : std::uint8_t {
  kBack,        ///< Queue it behind its equals.
  kFront,       ///< Queue it before its equals: a holder that goes on, a woken parent, a child.
  kParkUnlock,  ///< Not queued; its locks are released. It comes back through a later settle().
  kBackUnlock,  ///< Locks released, then queued behind the entries that waited for them.
  /// Locks released, every link and the lock set forgotten: the scheduler will not touch it again.
  kComplete,
  /// It was polled and its step has not begun: it goes back to where it stood, before its equals,
  /// and the next poll() reports its granted_by_poll() again. Of several, the last in the batch
  /// stands first.
  kReturn,
};

/// Identity and links of one schedulable thing. The public part is set before admit() and constant
/// until it completes, except where said; the private part belongs to the scheduler and its mutex.
class SchedulerEntry {
 public:
  static constexpr std::size_t kMaxLocks = UINT16_MAX;

  SchedulerEntry() = default;
  SchedulerEntry(const SchedulerEntry&) = delete;
  SchedulerEntry& operator=(const SchedulerEntry&) = delete;

  ProcedureId id;
  Priority priority = Priority::kNormal;
  /// The engine sets it before settle(), which reads it.
  Disposition disposition = Disposition::kBack;

  /// The entry that spawned this one; locks that an ancestor holds cover it. It outlives this
  /// entry. nullptr: it has none. Of an entry that has one, any thread may ask that knows it. Of
  /// one that has none, only a scheduler, under its mutex: it changes what is read here when it
  /// meets a child of that entry.
  [[nodiscard]] SchedulerEntry* parent() const noexcept {
    return family_ ? family_->parent : nullptr;
  }
  /// Before the scheduler knows the entry.
  void set_parent(SchedulerEntry* parent) {
    PV2_ASSERT(place_ == Place::kUnknown, "the parent of a known entry does not change");
    if (parent != nullptr) make_family();
    if (family_) family_->parent = parent;
  }

  /// At most kMaxLocks; the caller of admit() ensures it.
  [[nodiscard]] const EntryLocks& locks() const noexcept {
    // Never destroyed: a scheduler may be static, too.
    static const EntryLocks& none = *new EntryLocks();
    return locks_ ? *locks_ : none;
  }
  /// To change the set, before the scheduler knows the entry. An entry that asks for no locks does
  /// without the memory for them.
  [[nodiscard]] LockSet& edit_locks() {
    PV2_ASSERT(place_ == Place::kUnknown, "the lock set of a known entry does not change");
    if (!locks_) locks_ = std::make_unique<EntryLocks>();
    return locks_->set_;
  }

  /// Whether the lock set is held (always true for an empty one). Stable while the entry is neither
  /// queued nor parked as a waiter, that is: after a grant, until the next settle().
  [[nodiscard]] bool holds_locks() const noexcept {
    return holds_locks_ || !locks_ || locks_->empty();
  }
  /// Whether the poll that returned this entry also granted its locks; false after admit()
  /// and restore(), and after the next settle().
  [[nodiscard]] bool granted_by_poll() const noexcept { return granted_by_poll_; }

 protected:
  ~SchedulerEntry() = default;

 private:
  friend class EntryList;
  friend class LockTable;
  friend class LockingScheduler;

  /// No rank is larger, so no entry is ever more urgent than one that is not queued.
  static constexpr std::uint16_t kNotQueued = UINT16_MAX;
  friend class ReadyLane;

  /// Where the entry is. Only a queued one (waiting or ready) stands in a line or in a queue.
  enum class Place : std::uint8_t { kUnknown, kOut, kWaiting, kReady };

  struct Family : Recycled {
    SchedulerEntry* parent = nullptr;
    // Of the entries that the scheduler knows.
    SchedulerEntry* first_child = nullptr;
    SchedulerEntry* next_sibling = nullptr;
    SchedulerEntry* prev_sibling = nullptr;
  };

  [[nodiscard]] SchedulerEntry* first_known_child() const noexcept {
    return family_ ? family_->first_child : nullptr;
  }
  /// What an entry needs to be linked as a child or as a parent.
  void make_family() {
    if (!family_) family_ = std::make_unique<Family>();
  }

  // Ranks order entries, class first; a larger one goes first. See ReadyQueue::rank(). They fill
  // the word in which the members above them end.
  std::uint16_t own_rank_ = 0;
  std::uint16_t rank_ = 0;  // its own, or a larger one lent by an entry that waits for it
  // The rank with which it stands in the ready queue, or with which it was polled and not settled
  // since.
  std::uint16_t queued_rank_ = kNotQueued;
  // Made when the entry gets a parent, or the scheduler meets its first child; kept as long as the
  // entry. Most entries are alone and have none.
  std::unique_ptr<Family> family_;
  SchedulerEntry* next_ = nullptr;     // in an EntryList or, while ready, in its lane
  SchedulerEntry* prev_ = nullptr;     // in its lane
  std::unique_ptr<EntryLocks> locks_;  // null: it asks for none
  SteadyTime since_;                   // holding or waiting since
  std::uint32_t waiting_descendants_ = 0;
  std::uint8_t seat_ = 0;  // where it stands while ready: seat_turns.h
  // All of these share a byte: a flag written alone and then read with its neighbours would stall.
  Place place_ : 2 = Place::kUnknown;
  bool holds_locks_ : 1 = false;
  bool queued_in_front_ : 1 = false;
  bool granted_in_queue_ : 1 = false;  // becomes granted_by_poll_ when polled
  bool granted_by_poll_ : 1 = false;
  bool stands_with_nested_ : 1 = false;  // of a waiter, see Kin
  bool is_polled_ : 1 = false;           // and not settled since
};

static_assert(sizeof(SchedulerEntry) == 64, "each procedure is one of these");

/// A singly linked list of entries, used to hand batches over. Owns nothing. Owned by one thread.
class EntryList {
 public:
  EntryList() = default;
  EntryList(EntryList&& other) noexcept
      : head_(other.head_), tail_(other.tail_), size_(other.size_) {
    other.head_ = other.tail_ = nullptr;
    other.size_ = 0;
  }
  EntryList& operator=(EntryList&&) = delete;

  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Walks along the list.
  [[nodiscard]] bool contains(const SchedulerEntry& entry) const noexcept {
    const SchedulerEntry* at = head_;
    while (at != nullptr && at != &entry) at = at->next_;
    return at != nullptr;
  }

  /// Appends `entry` and remembers what settle() is to do with it.
  void push_back(SchedulerEntry& entry, Disposition disposition) noexcept {
    entry.disposition = disposition;
    push_back(entry);
  }
  void push_back(SchedulerEntry& entry) noexcept {
    entry.next_ = nullptr;
    (tail_ ? tail_->next_ : head_) = &entry;
    tail_ = &entry;
    ++size_;
  }
  SchedulerEntry* pop_front() noexcept {
    SchedulerEntry* const entry = head_;
    if (entry == nullptr) return nullptr;
    head_ = entry->next_;
    if (head_ == nullptr) tail_ = nullptr;
    entry->next_ = nullptr;
    --size_;
    return entry;
  }

 private:
  SchedulerEntry* head_ = nullptr;
  SchedulerEntry* tail_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace pv2
