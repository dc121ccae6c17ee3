// SPDX-License-Identifier: Apache-2.0
//
// LoopTimers: any number of timers behind one timer of Asio. Most timers of the RPC layer are
// deadlines, which are cancelled before they are due: here that costs an entry in two maps, and no
// work of the reactor.

#pragma once

#include <pv2/base/clock.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>

#include "asio_types.h"
#include "pv2/rpc/transport.h"

namespace pv2 {

/// Owned by the loop's thread.
class LoopTimers {
 public:
  /// Both outlive it.
  LoopTimers(asio::io_context& io, const Clock& clock) : clock_(clock), alarm_(io) {}

  TimerId call_at(SteadyTime when, std::function<void()> task);
  void cancel(TimerId timer);
  /// Cancels all. What a task owns is destroyed here, and may call cancel().
  void clear();

 private:
  // Timers that are due at the same time are called in the order in which they were made.
  struct Key {
    SteadyTime when;
    std::uint64_t number;
    auto operator<=>(const Key&) const = default;
  };
  void arm();
  void fire();

  const Clock& clock_;
  LoopTimer alarm_;
  std::optional<SteadyTime> armed_for_;  // when the alarm goes off; it may be too early
  std::map<Key, std::function<void()>> tasks_;
  std::unordered_map<std::uint64_t, SteadyTime> due_;  // by the timer's number
  std::uint64_t next_number_ = 1;
};

}  // namespace pv2
