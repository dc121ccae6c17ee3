// SPDX-License-Identifier: Apache-2.0
//
// FaultConnection: one client's connection through a FaultProxy: two streams, and a pipe for each
// direction. It cuts what arrives into frames, asks the plan for their fate, and sees to it that
// nothing is kept for ever.

#pragma once

#include <pv2/base/time.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "fault_pipe.h"
#include "pv2/rpc/fault_plan.h"
#include "pv2/rpc/fault_proxy.h"
#include "pv2/rpc/frame_reader.h"
#include "pv2/rpc/rpc_frame.h"
#include "pv2/rpc/transport.h"

namespace pv2 {

/// What all connections of a proxy share. Owned by the loop's thread.
struct FaultWorld {
  FaultProxyOptions options;
  std::uint64_t bytes_per_second = 0;
  FaultProxyCounters counters{};
};

/// Owned by the loop's thread. Each call that it gets from outside keeps it alive until it returns,
/// because a fate may end the connection meanwhile.
class FaultConnection : public std::enable_shared_from_this<FaultConnection> {
 public:
  /// `ended` is called once, unless the connection is destroyed before; it may drop the owner's
  /// reference.
  FaultConnection(std::shared_ptr<FaultWorld> world, std::uint64_t number,
                  std::function<void()> ended);
  ~FaultConnection();
  FaultConnection(const FaultConnection&) = delete;
  FaultConnection& operator=(const FaultConnection&) = delete;

  /// Begins to read from `client`, and connects to the target. To be called once.
  void start(std::unique_ptr<Stream> client);
  /// Closes both streams at once.
  void end();
  /// See Fate::half_open. `by` is the direction that kDirection means.
  void half_open(Direction by, Fate::HalfOpen what);
  /// Sends what may be sent now, in both directions.
  void pump();
  [[nodiscard]] std::size_t kept() const noexcept;

 private:
  enum class Reading : std::uint8_t {
    kPasses,
    kSwallows,  ///< What arrives goes nowhere, and neither does the news of the end.
    kOver,      ///< Nothing will arrive; when the pipe is empty, the connection ends.
  };
  /// One direction.
  struct Way {
    Way(FaultCounts& counted, const FaultProxyOptions& options)
        : counts(counted), reader(options.frame_bytes_max), pipe(counted, options.kept_bytes_max) {}
    FaultCounts& counts;
    FrameReader reader;
    FaultPipe pipe;
    Reading reading = Reading::kPasses;
    SteadyTime over_since{};
    std::uint64_t next_index = 0;
    bool is_paused = false;
    TimerId timer{};
    SteadyTime timer_at{};
  };
  /// The end of a stream that is the source of one direction, and the sink of the other.
  struct End final : public StreamListener {
    End(FaultConnection& owner, Direction source_of) : connection(owner), source(source_of) {}
    void on_bytes(std::string_view bytes) override { connection.on_bytes(source, bytes); }
    void on_drained() override { connection.on_drained(source); }
    void on_closed(const Status& /*why*/) override { connection.on_closed(source); }
    FaultConnection& connection;
    const Direction source;
    std::unique_ptr<Stream> stream;  // null: not connected yet, or closed
  };

  [[nodiscard]] Way& way(Direction direction) noexcept;
  [[nodiscard]] End& source_of(Direction direction) noexcept;
  [[nodiscard]] End& sink_of(Direction direction) noexcept;

  void on_connected(Result<std::unique_ptr<Stream>> server);
  void on_bytes(Direction direction, std::string_view bytes);
  void on_drained(Direction source);
  void on_closed(Direction direction);
  void nothing_more_comes(Direction direction);
  void swallow(Direction direction);

  void read_frames(Direction direction, std::string_view bytes);
  /// Gives one frame or piece its fate; `bytes` are what is passed on.
  void pass(PassingFrame frame, std::string bytes);
  void put_into_pipe(const PassingFrame& frame, const Fate& fate, std::string bytes);
  [[nodiscard]] Result<Fate> ask_plan(const PassingFrame& frame) const;
  [[nodiscard]] std::string method_of(const RpcFrame& frame);

  void pump(Direction direction);
  void cut_after_last(Direction direction);
  [[nodiscard]] bool has_passed_all(Direction direction);
  [[nodiscard]] bool lingers_too_long(Direction direction, SteadyTime now);
  [[nodiscard]] SteadyTime lingers_until(Direction direction);
  void pause_or_resume(Direction direction);
  void set_timer(Direction direction);
  void cancel_timer(Direction direction);

  const std::shared_ptr<FaultWorld> world_;  // shared with the proxy and its other connections
  const std::uint64_t number_;
  std::function<void()> ended_;
  bool is_connecting_ = true;
  bool is_over_ = false;
  std::array<Way, 2> ways_;
  End client_{*this, Direction::kToServer};
  End server_{*this, Direction::kToClient};
  std::map<std::uint64_t, std::string> methods_;  // of the calls without a reply, by id
};

}  // namespace pv2
