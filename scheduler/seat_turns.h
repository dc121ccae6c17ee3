// SPDX-License-Identifier: Apache-2.0
//
// SeatTurns: at which seats a poll looks for runnable entries, and in which order. Each worker has
// a seat, where those wait that it has made runnable itself: they are still in the cache of its
// processor. The common seat is for those that no worker has made runnable. Rules:
//
//     own and common    take turns to be first, so neither waits for the other
//     neglected         seats take turns with these two: those whose worker has not polled for
//                       kNeglected polls, and those where far more wait than at the own one
//     the others        a worker that finds nothing at those takes a half of what is there
//
// So no entry depends on the worker at whose seat it waits. The seats only choose among equals: of
// which class and priority the next entry is, the ready queue decides for all seats together.

#pragma once

#include <pv2/base/assert.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

namespace pv2 {

/// The number of a seat.
using Seat = std::uint8_t;
inline constexpr Seat kCommonSeat = 0;
/// Of more workers, some share a seat.
inline constexpr std::size_t kSeats = 16;

/// Where one poll looks.
struct SeatOrder {
  std::array<Seat, kSeats> seats;  ///< Each once, in order.
  std::size_t first_count;         ///< From how many of them it takes whatever is there.
  std::size_t most_of_others;      ///< How many entries it takes if there is nothing at those.

  [[nodiscard]] std::span<const Seat> first() const noexcept {
    return std::span(seats).first(first_count);
  }
  [[nodiscard]] std::span<const Seat> all() const noexcept { return seats; }
};

/// The seat of a worker; `worker` counts from 1, and 0 is no worker.
[[nodiscard]] constexpr Seat seat_of(std::size_t worker) noexcept {
  return worker == 0 ? kCommonSeat : static_cast<Seat>(1 + (worker - 1) % (kSeats - 1));
}

/// Guarded by its scheduler's mutex.
class SeatTurns {
 public:
  /// For so many polls of others in a row a seat waits for its own worker.
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

  /// A worker polls that has this seat.
  [[nodiscard]] SeatOrder next(Seat own) noexcept {
    polled_at_[own] = ++polls_;
    SeatOrder order{.seats = {own}, .first_count = 1, .most_of_others = (runnable() + 1) / 2};
    std::size_t last = kSeats;
    for (std::size_t i = 1; i < kSeats; ++i) {
      const auto seat = static_cast<Seat>((own + i) % kSeats);
      order.seats[takes_turns(seat, own) ? order.first_count++ : --last] = seat;
    }
    std::swap(order.seats[0], order.seats[turns_[own]++ % order.first_count]);
    return order;
  }

 private:
  // So many more wait at one seat than at the other that its worker does not come to all of them.
  static constexpr std::size_t kFarMore = 128;

  [[nodiscard]] bool takes_turns(Seat seat, Seat own) const noexcept {
    if (runnable_[seat] == 0) return false;
    return seat == kCommonSeat || polls_ - polled_at_[seat] > kNeglected ||
           runnable_[seat] > 2 * runnable_[own] + kFarMore;
  }

  std::array<std::size_t, kSeats> runnable_{};
  std::array<std::uint64_t, kSeats> polled_at_{};
  std::array<std::size_t, kSeats> turns_{};
  std::uint64_t polls_ = 0;
};

}  // namespace pv2
