// SPDX-License-Identifier: Apache-2.0
//
// SlotList: the slots of a step that waits, in the order in which the step asked for them. Most
// steps have one slot, which lies in the list itself. With a second one all move into a vector.

#pragma once
#include <pv2/base/assert.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "pv2/engine/completion.h"

namespace pv2 {

/// Owned by the object that contains it. The verbs are those of std::vector. The slots are shared
/// with the completions that the host holds.
class SlotList {
 public:
  using Slot = Ref<AwaitSlot>;

  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] std::size_t size() const noexcept {
    return many_ ? many_->size() : static_cast<std::size_t>(one_ != nullptr);
  }
  [[nodiscard]] Slot* begin() noexcept { return many_ ? many_->data() : &one_; }
  [[nodiscard]] Slot* end() noexcept { return begin() + size(); }
  [[nodiscard]] const Slot* begin() const noexcept { return many_ ? many_->data() : &one_; }
  [[nodiscard]] const Slot* end() const noexcept { return begin() + size(); }
  [[nodiscard]] Slot& operator[](std::size_t index) noexcept {
    PV2_ASSERT(index < size(), "the index names a slot");
    return begin()[index];
  }

  void push_back(Slot slot) {
    PV2_ASSERT(slot != nullptr, "a slot that is added is not null");
    if (empty() && !many_) {
      one_ = std::move(slot);
      return;
    }
    if (!many_) {
      many_ = std::make_unique<std::vector<Slot>>();
      many_->push_back(std::move(one_));
    }
    many_->push_back(std::move(slot));
  }
  void clear() noexcept {
    one_ = nullptr;
    many_.reset();
  }

 private:
  Slot one_;
  std::unique_ptr<std::vector<Slot>> many_;  // null: there is at most one
};

}  // namespace pv2
