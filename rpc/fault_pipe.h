// SPDX-License-Identifier: Apache-2.0
//
// FaultPipe: one direction of a connection through a FaultProxy: what is on its way, when it may go
// on, and in which order. It decides no fate and has no timer: its owner pumps it.
//
//     append()  ----------------->  line: passed in order, each when it is due  --->  stream
//     hold_back()  -->  held  -----^ at its place, when enough have passed or it is time

#pragma once

#include <pv2/base/time.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "pv2/rpc/fault_proxy.h"

namespace pv2 {

/// Owned by the loop's thread.
class FaultPipe {
 public:
  /// `counts` outlives it. It gives a stream no more while that has `room` unsent bytes.
  FaultPipe(FaultCounts& counts, std::size_t room) : counts_(counts), room_(room) {}

  struct Item {
    std::string bytes{};
    std::uint32_t copies = 1;
    SteadyTime due{};      ///< Not before this time.
    bool is_last = false;  ///< The connection is to be cut after it.
  };
  void append(Item item);
  /// Keeps `item` out of the line until `behind` later ones have passed, or until the time `until`.
  void hold_back(Item item, std::uint32_t behind, SteadyTime until);
  /// Nothing will be added: what is held back has nothing to wait for.
  void no_more_comes();
  void clear();

  /// Sends what may be sent now. Stops after an item that is the last.
  void pump(Stream& out, SteadyTime now, std::uint64_t bytes_per_second);

  /// Whether the last item was sent.
  [[nodiscard]] bool has_sent_last() const noexcept { return has_sent_last_; }
  [[nodiscard]] bool is_empty() const noexcept { return line_.empty() && held_.empty(); }
  /// Whether only the stream's reader is waited for.
  [[nodiscard]] bool waits_for_reader() const noexcept { return is_empty() || waits_for_room_; }
  /// When it has something to do, unless it waits for the reader.
  [[nodiscard]] std::optional<SteadyTime> wakes_at() const;
  [[nodiscard]] SteadyTime last_sent_at() const noexcept { return last_sent_at_; }
  /// The bytes that it holds, with kItemBytes for each item.
  [[nodiscard]] std::size_t kept() const noexcept { return kept_; }
  /// About what an item without bytes takes.
  static constexpr std::size_t kItemBytes = 128;

 private:
  struct Numbered {
    std::uint64_t number;  // in the order of arrival
    Item item;
  };
  struct Held {
    Numbered numbered;
    std::uint32_t behind;
    SteadyTime until;
  };

  [[nodiscard]] bool send_slice(Stream& out, SteadyTime now, std::uint64_t bytes_per_second);
  void copy_passed();
  void release(std::size_t index);
  void release_due(SteadyTime now);

  FaultCounts& counts_;
  const std::size_t room_;
  std::deque<Numbered> line_;
  std::vector<Held> held_;  // in the order of arrival
  std::uint64_t last_number_ = 0;
  std::uint64_t highest_passed_ = 0;
  std::size_t kept_ = 0;
  std::size_t sent_of_front_ = 0;  // bytes of the present copy
  bool front_was_copied_ = false;  // a copy of the front has passed
  bool waits_for_room_ = false;
  bool has_sent_last_ = false;
  SteadyTime free_at_{};  // when the throttle lets the next slice pass
  SteadyTime last_sent_at_{};
};

}  // namespace pv2
