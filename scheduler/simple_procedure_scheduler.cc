// SPDX-License-Identifier: Apache-2.0
//
// SimpleProcedureScheduler: a lane for each seat as ReadyQueue. Cannot fail.

#include "pv2/scheduler/simple_procedure_scheduler.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "lock_table.h"
#include "ready_queue.h"

namespace pv2 {
namespace {

class LanePerSeat final : public ReadyQueue {
 public:
  explicit LanePerSeat(std::uint32_t bounded_wait) : bounded_wait_(bounded_wait) {}

  // Without classes and priorities all entries are equal, so there is nothing to lend or to
  // reserve.
  [[nodiscard]] std::uint16_t rank(const SchedulerEntry& /*entry*/) const override { return 0; }
  [[nodiscard]] bool is_top(std::uint16_t /*rank*/) const override { return true; }

  Seat push(SchedulerEntry& entry, const ReadyPlace& place) override {
    seats_.fill(place.seat);
    lanes_[place.seat].push(entry, place.section);
    return place.seat;
  }

  Seat put_back(SchedulerEntry& entry, const ReadyPlace& place) override {
    seats_.fill(place.seat);
    lanes_[place.seat].put_back(entry, place.section);
    return place.seat;
  }

  void remove(SchedulerEntry& entry, const ReadyPlace& place) override {
    lanes_[place.seat].remove(entry);
    if (lanes_[place.seat].empty()) seats_.drain(place.seat);
  }

  [[nodiscard]] std::size_t count_ahead(const SchedulerEntry& entry, const ReadyPlace& place,
                                        std::size_t most) override {
    return lanes_[place.seat].count_ahead(entry, most);
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
  std::size_t take_at(const SeatChoice& choice, std::span<SchedulerEntry*> run) {
    std::size_t taken = 0;
    while (taken < run.size()) {
      const std::optional<Seat> seat = seats_.serve(choice);
      if (!seat) break;
      run[taken++] = &lanes_[*seat].pop(bounded_wait_);
      if (lanes_[*seat].empty()) seats_.drain(*seat);
    }
    return taken;
  }

  const std::uint32_t bounded_wait_;
  SeatPicker seats_;
  std::array<ReadyLane, kSeats> lanes_;  // by seat
};

}  // namespace

SimpleProcedureScheduler::SimpleProcedureScheduler(const Clock& clock,
                                                   SimpleSchedulerOptions options)
    : LockingScheduler(std::make_unique<LanePerSeat>(options.bounded_wait), clock) {}

}  // namespace pv2
