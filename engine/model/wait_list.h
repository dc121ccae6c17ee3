// SPDX-License-Identifier: Apache-2.0
//
// WaitList: the callers that wait for the result of one root. Most roots have one such caller, and
// some have a hundred thousand, each of which may lose its patience. So the oldest caller is kept
// in place, and the others in a map, in which each is found by its ticket.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/block_cache.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "model/reply.h"
#include "pv2/engine/procedure_result.h"

namespace pv2 {

/// A caller that waits for a result.
struct Waiter {
  Reply<Result<ProcedureResult>> reply;
  std::uint64_t ticket = 0;  ///< The number of the wait, by which it is withdrawn.
};

/// Callers in the order of their tickets, no two of which are the same. One word while it is empty.
/// The state mutex guards the list of a root.
class WaitList {
 public:
  [[nodiscard]] bool empty() const noexcept { return held_ == nullptr; }
  [[nodiscard]] bool has_one() const noexcept { return held_ != nullptr && !held_->others; }

  /// Throws std::bad_alloc; the list is then as it was.
  void add(Waiter waiter) {
    if (!held_) {
      held_ = std::make_unique<Held>();
      held_->oldest = std::move(waiter);
      return;
    }
    PV2_ASSERT(waiter.ticket != held_->oldest.ticket, "each wait has a ticket of its own");
    const bool is_oldest = waiter.ticket < held_->oldest.ticket;
    auto made = held_->others ? nullptr : std::make_unique<Others>();
    Others& others = made ? *made : *held_->others;
    Waiter& later = is_oldest ? held_->oldest : waiter;
    const std::size_t before = others.size();
    const auto place = others.try_emplace(others.end(), later.ticket);
    PV2_ASSERT(others.size() == before + 1, "each wait has a ticket of its own");
    place->second = std::move(later.reply);
    if (is_oldest) held_->oldest = std::move(waiter);
    if (made) held_->others = std::move(made);
  }
  /// Removes the caller with `ticket`, and returns its reply. nullopt: there is none.
  [[nodiscard]] std::optional<Reply<Result<ProcedureResult>>> withdraw(std::uint64_t ticket) {
    if (!held_) return std::nullopt;
    if (ticket == held_->oldest.ticket) return take_oldest().reply;
    if (!held_->others) return std::nullopt;
    auto found = held_->others->extract(ticket);
    if (!found) return std::nullopt;
    if (held_->others->empty()) held_->others.reset();
    return std::move(found.mapped());
  }
  /// Removes the oldest caller. The list is not empty.
  Waiter take_oldest() {
    PV2_ASSERT(held_, "a list from which a caller is taken is not empty");
    Waiter oldest = std::move(held_->oldest);
    if (!held_->others) {
      held_.reset();
      return oldest;
    }
    auto next = held_->others->extract(held_->others->begin());
    held_->oldest = {std::move(next.mapped()), next.key()};
    if (held_->others->empty()) held_->others.reset();
    return oldest;
  }

 private:
  using Others =
      std::map<std::uint64_t, Reply<Result<ProcedureResult>>, std::less<>,
               BlockAllocator<std::pair<const std::uint64_t, Reply<Result<ProcedureResult>>>>>;
  struct Held : Recycled {
    Waiter oldest;
    std::unique_ptr<Others> others;  // nullptr: none
  };

  std::unique_ptr<Held> held_;
};

}  // namespace pv2
