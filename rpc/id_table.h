// SPDX-License-Identifier: Apache-2.0
//
// IdTable: what ids stand for that are counted up. The place of an id is the id modulo the size of
// the table, so ids that follow one another lie in a row, and each is found where it is looked for
// first. An old id that keeps its place for long pushes newer ones aside: Robin Hood hashing
// (Celis, 1986), with the entries behind an erased one moved back.

#pragma once

#include <pv2/base/assert.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace pv2 {

/// Used by one thread at a time. An empty T stands for no value.
template <class T>
class IdTable {
 public:
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// `id` is not 0, and not in the table. If there is no memory, nothing has changed.
  void insert(std::uint64_t id, T value) {
    PV2_ASSERT(id != 0, "0 is the id of an empty place");
    if (2 * (size_ + 1) > entries_.size()) grow();
    place({id, std::move(value)});
    ++size_;
  }
  /// nullptr: it is not in the table. Valid until the table changes.
  [[nodiscard]] T* find(std::uint64_t id) noexcept {
    const std::size_t at = index_of(id);
    return at == kNowhere ? nullptr : &entries_[at].value;
  }
  /// Removes `id`. An empty T: it was not in the table.
  T take(std::uint64_t id) noexcept {
    std::size_t at = index_of(id);
    if (at == kNowhere) return T();
    T taken = std::move(entries_[at].value);
    for (std::size_t next = after(at); entries_[next].id != 0 && distance(next) != 0;
         next = after(at)) {
      entries_[at] = std::move(entries_[next]);
      at = next;
    }
    entries_[at] = Entry();
    --size_;
    return taken;
  }
  /// Calls `visit(id, value)` for each, in no order. The table is not changed meanwhile.
  template <class Visit>
  void for_each(const Visit& visit) {
    for (Entry& entry : entries_) {
      if (entry.id != 0) visit(entry.id, entry.value);
    }
  }
  void clear() noexcept {
    entries_.clear();
    size_ = 0;
  }

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  static constexpr std::size_t kSizeMin = 16;
  struct Entry {
    std::uint64_t id = 0;
    T value{};
  };

  // Sizes are powers of two.
  [[nodiscard]] std::size_t home(std::uint64_t id) const noexcept {
    return id & (entries_.size() - 1);
  }
  [[nodiscard]] std::size_t after(std::size_t at) const noexcept { return home(at + 1); }
  /// How far the entry there is from its place.
  [[nodiscard]] std::size_t distance(std::size_t at) const noexcept {
    return home(at - home(entries_[at].id));
  }

  [[nodiscard]] std::size_t index_of(std::uint64_t id) const noexcept {
    if (size_ == 0 || id == 0) return kNowhere;
    std::size_t at = home(id);
    for (std::size_t far = 0; entries_[at].id != id; ++far, at = after(at)) {
      if (entries_[at].id == 0 || distance(at) < far) return kNowhere;
    }
    return at;
  }
  void place(Entry entry) noexcept {
    std::size_t at = home(entry.id);
    for (std::size_t far = 0; entries_[at].id != 0; ++far, at = after(at)) {
      PV2_ASSERT(entries_[at].id != entry.id, "an id is inserted once");
      if (distance(at) >= far) continue;
      far = distance(at);
      std::swap(entry, entries_[at]);
    }
    entries_[at] = std::move(entry);
  }
  void grow() {
    std::vector<Entry> old(entries_.empty() ? kSizeMin : 2 * entries_.size());
    old.swap(entries_);
    for (Entry& entry : old) {
      if (entry.id != 0) place(std::move(entry));
    }
  }

  std::vector<Entry> entries_;
  std::size_t size_ = 0;
};

}  // namespace pv2
