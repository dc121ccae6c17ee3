// SPDX-License-Identifier: Apache-2.0
//
// FaultPlan: decides what happens to each frame that a FaultProxy passes on. It decides only; the
// proxy does it. Two exist: random_faults.h (rates and a seed) and scripted_faults.h (rules such as
// "the third reply: drop").

#pragma once

#include <pv2/base/status.h>
#include <pv2/base/time.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "pv2/rpc/rpc_frame.h"

namespace pv2 {

/// Says where a frame goes.
enum class Direction : std::uint8_t { kToServer = 0, kToClient = 1 };
/// Returns "to the server" or "to the client", for messages.
[[nodiscard]] std::string_view to_string(Direction direction) noexcept;

/// A plan learns this about a frame.
struct PassingFrame {
  std::uint64_t connection = 0;  ///< 1 is the first one that the proxy accepted.
  Direction direction = Direction::kToServer;
  std::uint64_t index = 0;  ///< 0 is the first frame of its connection in its direction.
  /// A proxy that passes bytes tells no kind, method or id.
  std::optional<FrameKind> kind{};
  /// A reply, a note and a cancel have the method of their call. The proxy remembers the calls with
  /// the 1024 highest ids of a connection, and tells no method for others.
  std::string_view method{};
  std::uint64_t id = 0;
  std::size_t size = 0;  ///< The bytes of the frame, with its header.
};

/// Says what happens to a frame. By default the proxy passes it on.
///
/// One frame can have several of these fates: then half_open comes first, then a cut before it,
/// then a drop, and the others together.
struct Fate {
  /// The proxy passes the frame on so often: 0 drops it, 2 duplicates it. It is at most kCopiesMax.
  std::uint32_t copies = 1;
  /// The proxy passes the frame on so much later. The frames behind it wait for it: a delay never
  /// changes the order.
  Duration delay{};
  /// The proxy reorders: it holds the frame back until this number of later frames of its direction
  /// and connection have passed, but for hold_back at most. The frame passes at once when its
  /// sender closes the connection, because no later frame will come.
  std::uint32_t behind = 0;
  Duration hold_back = std::chrono::seconds(1);

  enum class Cut : std::uint8_t {
    kNo,
    kBefore,  ///< The proxy cuts at once, and what the connection still holds is lost.
    /// The proxy cuts when it has passed on the frame and those before it; with copies = 0, at
    /// once.
    kAfter,
  };
  /// Says whether both ends see the connection closed.
  Cut cut = Cut::kNo;

  enum class HalfOpen : std::uint8_t { kNo, kDirection, kBoth };
  /// From this frame on, the proxy swallows everything that comes in its direction, or in both, and
  /// also the news that the sender has closed. It still passes on what it took before.
  HalfOpen half_open = HalfOpen::kNo;

  static constexpr std::uint32_t kCopiesMax = 16;
  /// A delay and a hold_back last at most so long.
  static constexpr Duration kTimeMax = std::chrono::hours(1);
};
/// Checks a fate. kInvalidArgument: it is outside of its bounds, or a time is negative.
[[nodiscard]] Status check(const Fate& fate);

/// Decides about frames. The proxy calls it on the loop's thread of its transport, once for each
/// frame, in the order of arrival. It must not block, and must not destroy the proxy. When it
/// throws, or its fate is outside of the bounds, the proxy cuts the connection and counts a failure
/// of the plan.
class FaultPlan {
 public:
  virtual ~FaultPlan() = default;
  [[nodiscard]] virtual Fate fate(const PassingFrame& frame) = 0;
};

}  // namespace pv2
