// SPDX-License-Identifier: Apache-2.0
//
// SlotList: the slots of a step that waits, in the order in which the step asked for them, in one
// word. Most steps have one slot: the word is its address. With a second one all move into a
// vector: the word is the vector's address, marked by the lowest bit.

#pragma once
#include <pv2/base/assert.h>
#include <pv2/base/ref.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "pv2/engine/completion.h"

namespace pv2 {

/// Owned by the object that contains it. The verbs are those of std::vector. The list has one
/// reference to each of its slots, which it shares with the completions that the host holds.
class SlotList {
 public:
  SlotList() = default;
  SlotList(const SlotList&) = delete;
  SlotList& operator=(const SlotList&) = delete;
  ~SlotList() { clear(); }

  [[nodiscard]] bool empty() const noexcept { return word_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept {
    return has_many() ? many()->size() : static_cast<std::size_t>(word_ != nullptr);
  }
  [[nodiscard]] AwaitSlot* const* begin() const noexcept {
    return has_many() ? many()->data() : &word_;
  }
  [[nodiscard]] AwaitSlot* const* end() const noexcept { return begin() + size(); }
  [[nodiscard]] AwaitSlot& operator[](std::size_t index) const noexcept {
    PV2_ASSERT(index < size(), "the index names a slot");
    return *begin()[index];
  }

  void push_back(Ref<AwaitSlot> slot) {
    PV2_ASSERT(slot != nullptr, "a slot that is added is not null");
    if (empty()) {
      word_ = slot.detach();
      return;
    }
    if (!has_many()) {
      auto both = std::make_unique<Many>();
      both->push_back(word_);
      both->push_back(slot.get());
      word_ = marked(both.release());
    } else {
      many()->push_back(slot.get());
    }
    (void)slot.detach();
  }
  void clear() noexcept {
    for (AwaitSlot* const slot : *this) (void)Ref<AwaitSlot>::adopt(slot);
    if (has_many()) delete many();
    word_ = nullptr;
  }

 private:
  using Many = std::vector<AwaitSlot*>;

  [[nodiscard]] bool has_many() const noexcept {
    return (std::bit_cast<std::uintptr_t>(word_) & 1) != 0;
  }
  [[nodiscard]] Many* many() const noexcept {
    return std::bit_cast<Many*>(std::bit_cast<std::uintptr_t>(word_) & ~std::uintptr_t{1});
  }
  static AwaitSlot* marked(Many* many) noexcept {
    return std::bit_cast<AwaitSlot*>(std::bit_cast<std::uintptr_t>(many) | 1);
  }

  // null (empty), the only slot, or the marked address of a vector. Its type is that of a slot, so
  // that the only slot is an array of one.
  AwaitSlot* word_ = nullptr;
};

}  // namespace pv2
