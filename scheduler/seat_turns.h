// SPDX-License-Identifier: Apache-2.0
//
// Seats: where runnable entries stand. Each worker has one, for those that it has made runnable
// itself: they are still in the cache of its processor. The common seat is for all others. Seats
// choose only among equals: the entries of one class and priority are a line, and which line is
// served next is the same for all seats.
//
// SeatTurns says from which seats a worker takes whatever is there: its own, the common one, and
// those that are neglected, because their worker has not polled for a while, or because far more
// wait there. SeatPicker serves these in turn, for each line. So no entry waits for the worker at
// whose seat it stands, as long as its line is served: of 64 entries of a line one is of the next
// seat in turn, whoever polls. These turns are counted in the line, entry by entry. Turns that are
// counted poll by poll may keep step with those of the classes, and then one of two seats is never
// served when one of two classes is due.

#pragma once

#include <pv2/base/assert.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>

namespace pv2 {

/// The number of a seat.
using Seat = std::uint8_t;
/// Some seats, a bit for each.
using SeatSet = std::uint16_t;

inline constexpr Seat kCommonSeat = 0;
inline constexpr std::size_t kSeats = 16;
inline constexpr SeatSet kAllSeats = UINT16_MAX;

[[nodiscard]] constexpr SeatSet only(Seat seat) noexcept {
  return static_cast<SeatSet>(1U << seat);
}

/// The seat of a worker; `worker` counts from 1, and 0 is no worker. Of more than 15 workers, some
/// share a seat.
[[nodiscard]] constexpr Seat seat_of(std::size_t worker) noexcept {
  return worker == 0 ? kCommonSeat : static_cast<Seat>(1 + (worker - 1) % (kSeats - 1));
}

/// From where one poll takes entries.
struct SeatChoice {
  Seat own;
  SeatSet seats;               ///< It takes whatever is there.
  std::size_t most_of_others;  ///< How many it takes elsewhere if there is nothing at these.

  /// The same poll, when there is nothing at `seats`.
  [[nodiscard]] SeatChoice anywhere() const noexcept { return {own, kAllSeats, most_of_others}; }
};

/// Guarded by its scheduler's mutex.
class SeatTurns {
 public:
  /// A seat is neglected when more than 64 polls have taken entries since its worker last took one.
  static constexpr std::uint64_t kNeglected = 64;

  void added(Seat seat) noexcept { ++runnable_[seat]; }
  void removed(Seat seat) noexcept {
    PV2_ASSERT(runnable_[seat] != 0, "an entry that is taken was counted at its seat");
    --runnable_[seat];
  }
  /// At all seats.
  [[nodiscard]] std::size_t runnable() const noexcept {
    return std::accumulate(runnable_.begin(), runnable_.end(), std::size_t{0});
  }

  /// For a poll of the worker that has this seat, while `all` entries can run. Of what stands at
  /// other seats it takes at most half as many as can run.
  [[nodiscard]] SeatChoice choice(Seat own, std::size_t all) const noexcept {
    SeatChoice choice{own, static_cast<SeatSet>(only(own) | only(kCommonSeat)), (all + 1) / 2};
    for (Seat seat = 1; seat < kSeats; ++seat) {
      if (is_neglected(seat, own)) choice.seats |= only(seat);
    }
    return choice;
  }
  /// That poll has taken something.
  void polled(Seat own) noexcept { polled_at_[own] = ++polls_; }

 private:
  // A seat is also neglected when it holds more than twice as many entries as the polling worker's
  // seat, plus 128. A full run takes 64 entries.
  static constexpr std::size_t kFarMore = 128;

  [[nodiscard]] bool is_neglected(Seat seat, Seat own) const noexcept {
    return runnable_[seat] != 0 && (polls_ - polled_at_[seat] > kNeglected ||
                                    runnable_[seat] > 2 * runnable_[own] + kFarMore);
  }

  std::array<std::size_t, kSeats> runnable_{};
  std::array<std::uint64_t, kSeats> polled_at_{};
  std::uint64_t polls_ = 0;
};

/// At which seat a line is served next. Guarded by its scheduler's mutex.
class SeatPicker {
 public:
  /// A line gives one of 64 entries from a seat outside the poll's choice. These seats take turns.
  static constexpr std::uint32_t kOthersEvery = 64;

  [[nodiscard]] bool empty() const noexcept { return filled_ == 0; }
  void fill(Seat seat) noexcept { filled_ |= only(seat); }
  void drain(Seat seat) noexcept { filled_ &= static_cast<SeatSet>(~only(seat)); }

  /// The seat at which the next entry is taken now; nullopt: it is for another worker.
  [[nodiscard]] std::optional<Seat> serve(const SeatChoice& choice) noexcept {
    const auto others = static_cast<SeatSet>(filled_ & ~choice.seats);
    if (served_ + 1 >= kOthersEvery && others != 0) {
      served_ = 0;
      return last_of_others_ = next_after(last_of_others_, others);
    }
    const auto from = static_cast<SeatSet>(filled_ & choice.seats);
    if (from == 0) return std::nullopt;
    ++served_;
    Seat& last = last_[choice.own];
    return last = next_after(last, from);
  }

 private:
  static Seat next_after(Seat last, SeatSet from) noexcept {
    const auto later = static_cast<SeatSet>(from & ~((only(last) << 1U) - 1U));
    return static_cast<Seat>(std::countr_zero(later != 0 ? later : from));
  }

  SeatSet filled_ = 0;        // where entries stand
  std::uint32_t served_ = 0;  // since the last one of another worker's seat
  Seat last_of_others_ = kCommonSeat;
  std::array<Seat, kSeats>
      last_{};  // by the seat of who polls, so that none disturbs another's turns
};

}  // namespace pv2
