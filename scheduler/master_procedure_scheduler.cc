// SPDX-License-Identifier: Apache-2.0
//
// MasterProcedureScheduler: a FairQueue per class as ReadyQueue. A class listed twice counts where
// it is listed first. Cannot fail.

#include "pv2/scheduler/master_procedure_scheduler.h"

#include <pv2/base/assert.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>

#include "bounded_picker.h"
#include "fair_queue.h"
#include "lock_node.h"
#include "lock_table.h"
#include "rank.h"
#include "ready_queue.h"

namespace pv2 {
namespace {

class ClassQueues final : public ReadyQueue {
 public:
  explicit ClassQueues(const MasterSchedulerOptions& options)
      : top_classes_(options.top_classes), picker_(options.bounded_wait) {
    slot_of_class_.fill(kUnnamed);
    for (const ResourceClass cls : options.class_order) {
      std::uint8_t& slot = slot_of_class_[static_cast<std::uint8_t>(cls)];
      if (cls == ResourceClass{0} || slot != kUnnamed) continue;
      slot = static_cast<std::uint8_t>(queues_.size());
      queues_.push_back(std::make_unique<FairQueue>(options.bounded_wait));
    }
    const auto last = static_cast<std::uint8_t>(queues_.size());
    queues_.push_back(std::make_unique<FairQueue>(options.bounded_wait));
    for (std::uint8_t& slot : slot_of_class_) {
      if (slot == kUnnamed) slot = last;
    }
    for (const ResourceClass cls : {ResourceClass::kNamespace, ResourceClass::kRegion}) {
      std::uint8_t& slot = slot_of_class_[static_cast<std::uint8_t>(cls)];
      if (slot == last) slot = slot_of_class_[static_cast<std::uint8_t>(ResourceClass::kTable)];
    }
    last_ = last;
  }

  [[nodiscard]] std::uint16_t rank(const SchedulerEntry& entry) const override {
    const bool unlocked = entry.locks().empty();
    const std::size_t slot =
        unlocked ? last_ : slot_of_class_[static_cast<std::uint8_t>(entry.locks().primary().cls)];
    return make_rank(slot, entry.priority);
  }
  [[nodiscard]] bool is_top(std::uint16_t rank) const override {
    return rank_slot(rank) < top_classes_;
  }

  Seat push(SchedulerEntry& entry, const ReadyPlace& place) override {
    const std::size_t slot = rank_slot(place.rank);
    const Seat seat = queues_[slot]->push(entry, queue_of(place), place);
    picker_.fill(slot);
    return seat;
  }

  Seat put_back(SchedulerEntry& entry, const ReadyPlace& place) override {
    const std::size_t slot = rank_slot(place.rank);
    const Seat seat = queues_[slot]->put_back(entry, queue_of(place), place);
    picker_.fill(slot);
    return seat;
  }

  void remove(SchedulerEntry& entry, const ReadyPlace& place) override {
    const std::size_t slot = rank_slot(place.rank);
    queues_[slot]->remove(entry, queue_of(place), place.rank);
    if (queues_[slot]->empty()) picker_.drain(slot);
  }

  [[nodiscard]] std::size_t count_ahead(const SchedulerEntry& entry, const ReadyPlace& place,
                                        std::size_t most) override {
    const EntityLane* const lane = queue_of(place).find(place.rank);
    PV2_ASSERT(lane != nullptr, "an entry that is queued stands in a lane");
    return lane->ready.count_ahead(entry, most);
  }

  [[nodiscard]] std::size_t first_class() const override {
    return picker_.empty() ? 0 : rank_class(make_rank(picker_.first(), Priority{0}));
  }

  std::size_t take(std::span<SchedulerEntry*> run, const SeatChoice& choice) override {
    return take_below(run, BoundedPicker::kSlots, choice);
  }
  std::size_t take_top(std::span<SchedulerEntry*> run, const SeatChoice& choice) override {
    return take_below(run, top_classes_, choice);
  }

 private:
  // 0 is no class, so at most 255 are named and the last class always finds a slot.
  static constexpr std::uint8_t kUnnamed = 255;

  // Takes entries of classes before `end` only.
  std::size_t take_below(std::span<SchedulerEntry*> run, std::size_t end, SeatChoice choice) {
    std::size_t taken = 0;
    std::size_t slot = 0;
    while (taken < run.size()) {
      const std::size_t next = picker_.peek(end);
      if (next >= end || (taken != 0 && next != slot)) break;  // another class: the next poll
      slot = next;
      SchedulerEntry* entry = queues_[slot]->pop(choice);
      if (entry == nullptr) {
        if (taken != 0) break;  // it is for another worker
        choice = choice.anywhere();
        run = run.first(std::min(run.size(), choice.most_of_others));
        entry = queues_[slot]->pop(choice);
      }
      picker_.served(slot);
      run[taken++] = entry;
      if (queues_[slot]->empty()) picker_.drain(slot);
    }
    return taken;
  }

  EntityQueue& queue_of(const ReadyPlace& place) noexcept {
    return place.entity == nullptr ? unlocked_[place.seat] : place.entity->queue;
  }

  const std::size_t top_classes_;
  BoundedPicker picker_;
  std::array<std::uint8_t, 256> slot_of_class_{};
  std::vector<std::unique_ptr<FairQueue>> queues_;
  std::size_t last_ = 0;
  std::array<EntityQueue, kSeats> unlocked_;  // entries that lock nothing: one entity per seat
};

}  // namespace

MasterProcedureScheduler::MasterProcedureScheduler(const Clock& clock,
                                                   MasterSchedulerOptions options)
    : LockingScheduler(std::make_unique<ClassQueues>(options), clock) {}

}  // namespace pv2
