// SPDX-License-Identifier: Apache-2.0
//
// A network in memory, for tests and simulations: any number of streams between ends in one
// process, run on the caller's thread under a manual clock. The same calls in the same order give
// the same history.

#pragma once

#include <pv2/base/clock.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "pv2/rpc/transport.h"

namespace pv2 {

/// Any text is an address; one that ends in ":0" gets a number in place of the 0. One thread uses
/// it and is its loop; post() alone may be called by others. Bytes travel in no time, each send()
/// as one piece, and an end counts as unsent what the other end was not told of: an end that is
/// paused makes the other's unsent() grow. What a task throws comes out of run_until_idle().
///
/// Streams and acceptors may outlive it; they do nothing then.
class MemoryTransport final : public Transport {
 public:
  explicit MemoryTransport(std::shared_ptr<ManualClock> clock);
  ~MemoryTransport() override;

  /// Delivers bytes, runs tasks and due timers, until there is nothing left to do at the present
  /// time of the clock. Returns how many things it did; `most` bounds that.
  std::size_t run_until_idle(std::size_t most = static_cast<std::size_t>(-1));
  /// When the next timer is due; nullopt without timers.
  [[nodiscard]] std::optional<SteadyTime> next_timer() const;
  /// Moves the clock to the next timer that is due within `step`, and runs it and what follows from
  /// it, until `step` has passed.
  void run_for(Duration step);

  void post(std::function<void()> task) override;
  [[nodiscard]] bool on_loop() const noexcept override;
  [[nodiscard]] bool has_own_thread() const noexcept override { return false; }
  [[nodiscard]] Clock& clock() const noexcept override;
  TimerId call_at(SteadyTime when, std::function<void()> task) override;
  void cancel(TimerId timer) override;
  [[nodiscard]] Result<std::unique_ptr<StreamAcceptor>> listen(std::string_view address,
                                                               Accept accept) override;
  void connect(std::string_view address, Duration timeout, Connected connected) override;

  /// What the streams and acceptors hold on to; may outlive the transport.
  class Network;

 private:
  std::shared_ptr<Network> network_;
};

}  // namespace pv2
