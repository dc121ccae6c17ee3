// SPDX-License-Identifier: Apache-2.0
//
// ReadyLane: the runnable entries of one queue, in two sections: entries that go on stand before
// entries that begin. Each section is first in, first out. It owns nothing and allocates nothing:
// the links are in the entries.

#pragma once

#include <pv2/base/assert.h>

#include <cstddef>
#include <cstdint>

#include "pv2/scheduler/scheduler_entry.h"

namespace pv2 {

/// Which part of a lane an entry joins, at its end.
enum class ReadySection : std::uint8_t {
  kFront,  ///< A holder that goes on, a woken parent, a child, a waiter that got its locks.
  kBack,   ///< An entry that begins or yields.
};

/// Guarded by its scheduler's mutex.
class ReadyLane {
 public:
  [[nodiscard]] bool empty() const noexcept {
    return front_.head == nullptr && back_.head == nullptr;
  }

  void push(SchedulerEntry& entry, ReadySection section) noexcept {
    Section& list = section == ReadySection::kFront ? front_ : back_;
    entry.next_ = nullptr;
    entry.prev_ = list.tail;
    (list.tail != nullptr ? list.tail->next_ : list.head) = &entry;
    list.tail = &entry;
  }

  /// Puts an entry that was popped and has not begun at the beginning of a section. Turns counted
  /// meanwhile stay counted.
  void put_back(SchedulerEntry& entry, ReadySection section) noexcept {
    Section& list = section == ReadySection::kFront ? front_ : back_;
    entry.prev_ = nullptr;
    entry.next_ = list.head;
    (list.head != nullptr ? list.head->prev_ : list.tail) = &entry;
    list.head = &entry;
  }

  /// Takes the next entry: the front first, but after `bounded_wait` entries of the front in a row
  /// one of the back (0: never). The lane must not be empty.
  SchedulerEntry& pop(std::uint32_t bounded_wait) noexcept {
    PV2_ASSERT(!empty(), "a lane that is asked for its next entry has one");
    const bool overdue = bounded_wait != 0 && front_run_ >= bounded_wait && back_.head != nullptr;
    const bool from_front = front_.head != nullptr && !overdue;
    front_run_ = from_front ? front_run_ + 1 : 0;
    SchedulerEntry& entry = *(from_front ? front_ : back_).head;
    remove(entry);
    return entry;
  }

  void remove(SchedulerEntry& entry) noexcept {
    Section& list = front_.head == &entry || front_.tail == &entry ? front_ : back_;
    (entry.prev_ != nullptr ? entry.prev_->next_ : list.head) = entry.next_;
    (entry.next_ != nullptr ? entry.next_->prev_ : list.tail) = entry.prev_;
    entry.next_ = entry.prev_ = nullptr;
    if (back_.head == nullptr) front_run_ = 0;
  }

  /// How many entries stand before `entry`, which is in this lane, counted up to `most`. All of the
  /// front stands before an entry at the back.
  [[nodiscard]] std::size_t count_ahead(const SchedulerEntry& entry,
                                        std::size_t most) const noexcept {
    const std::size_t ahead = count_from(entry.prev_, most);
    return entry.queued_in_front_ ? ahead : ahead + count_front(most - ahead);
  }
  /// How many entries are in the front, counted up to `most`.
  [[nodiscard]] std::size_t count_front(std::size_t most) const noexcept {
    return count_from(front_.tail, most);
  }

 private:
  static std::size_t count_from(const SchedulerEntry* at, std::size_t most) noexcept {
    std::size_t count = 0;
    for (; at != nullptr && count < most; at = at->prev_) ++count;
    return count;
  }

  struct Section {
    SchedulerEntry* head = nullptr;
    SchedulerEntry* tail = nullptr;
  };
  Section front_;
  Section back_;
  std::uint32_t front_run_ = 0;  // served from the front in a row while the back waited
};

}  // namespace pv2
