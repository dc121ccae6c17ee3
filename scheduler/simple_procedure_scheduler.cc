// SPDX-License-Identifier: Apache-2.0
//
// SimpleProcedureScheduler: two sections as ReadyQueue, each with a lane for each seat. Cannot
// fail.

#include "pv2/scheduler/simple_procedure_scheduler.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "lock_table.h"
#include "ready_queue.h"

namespace pv2 {
namespace {

class TwoSections final : public ReadyQueue {
 public:
  explicit TwoSections(std::uint32_t bounded_wait) : bounded_wait_(bounded_wait) {}

  // Without classes and priorities all entries are equal, so there is nothing to lend or to
  // reserve.
  [[nodiscard]] std::uint16_t rank(const SchedulerEntry& /*entry*/) const override { return 0; }
  [[nodiscard]] bool is_top(std::uint16_t /*rank*/) const override { return true; }

  Seat push(SchedulerEntry& entry, const ReadyPlace& place) override {
    Section& section = section_of(place);
    section.seats.fill(place.seat);
    section.lanes[place.seat].push(entry, place.section);
    return place.seat;
  }

  Seat put_back(SchedulerEntry& entry, const ReadyPlace& place) override {
    Section& section = section_of(place);
    section.seats.fill(place.seat);
    section.lanes[place.seat].put_back(entry, place.section);
    return place.seat;
  }

  void remove(SchedulerEntry& entry, const ReadyPlace& place) override {
    Section& section = section_of(place);
    section.lanes[place.seat].remove(entry);
    left(section, place.seat);
  }

  [[nodiscard]] std::size_t count_ahead(const SchedulerEntry& entry, const ReadyPlace& place,
                                        std::size_t most) override {
    const std::size_t ahead = section_of(place).lanes[place.seat].count_ahead(entry, most);
    if (place.section == ReadySection::kFront) return ahead;
    return ahead + front_.lanes[place.seat].count_front(most - ahead);
  }

  [[nodiscard]] std::size_t first_class() const override { return 0; }

  std::size_t take(std::span<SchedulerEntry*> run, const SeatChoice& choice) override {
    if (const std::size_t taken = take_at(choice, run); taken != 0) return taken;
    return take_at(choice.anywhere(), run.first(std::min(run.size(), choice.most_of_others)));
  }
  std::size_t take_top(std::span<SchedulerEntry*> run, const SeatChoice& choice) override {
    return take(run, choice);
  }

 private:
  struct Section {
    SeatPicker seats;
    std::array<ReadyLane, kSeats> lanes;  // by seat; each has this section alone
  };

  Section& section_of(const ReadyPlace& place) noexcept {
    return place.section == ReadySection::kFront ? front_ : back_;
  }

  std::size_t take_at(const SeatChoice& choice, std::span<SchedulerEntry*> run) {
    std::size_t taken = 0;
    while (taken < run.size()) {
      SchedulerEntry* const entry = pop(choice);
      if (entry == nullptr) break;
      run[taken++] = entry;
    }
    return taken;
  }

  // The front first, but after `bounded_wait_` entries of the front in a row one of the back.
  SchedulerEntry* pop(const SeatChoice& choice) noexcept {
    const bool is_overdue = bounded_wait_ != 0 && front_run_ >= bounded_wait_;
    SchedulerEntry* entry = is_overdue ? pop_from(back_, choice) : pop_from(front_, choice);
    if (entry == nullptr) entry = is_overdue ? pop_from(front_, choice) : pop_from(back_, choice);
    return entry;
  }
  SchedulerEntry* pop_from(Section& section, const SeatChoice& choice) noexcept {
    const std::optional<Seat> seat = section.seats.serve(choice);
    if (!seat) return nullptr;
    front_run_ = &section == &front_ ? front_run_ + 1 : 0;
    SchedulerEntry& entry = section.lanes[*seat].pop(0);
    left(section, *seat);
    return &entry;
  }
  // An entry has left the section.
  void left(Section& section, Seat seat) noexcept {
    if (section.lanes[seat].empty()) section.seats.drain(seat);
    if (back_.seats.empty()) front_run_ = 0;
  }

  const std::uint32_t bounded_wait_;
  std::uint32_t front_run_ = 0;  // served from the front in a row while the back waited
  Section front_;
  Section back_;
};

}  // namespace

SimpleProcedureScheduler::SimpleProcedureScheduler(const Clock& clock,
                                                   SimpleSchedulerOptions options)
    : LockingScheduler(std::make_unique<TwoSections>(options.bounded_wait), clock) {}

}  // namespace pv2
