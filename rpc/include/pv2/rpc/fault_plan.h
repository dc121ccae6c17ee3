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

/// Where a frame goes.
enum class Direction : std::uint8_t { kToServer = 0, kToClient = 1 };
/// "to the server"; for messages.
[[nodiscard]] std::string_view to_string(Direction direction) noexcept;

/// What a plan is told about a frame.
struct PassingFrame {
  std::uint64_t connection = 0;  ///< 1 is the first that the proxy accepted.
  Direction direction = Direction::kToServer;
  std::uint64_t index = 0;  ///< 0 is the first frame of its connection in its direction.
  /// No kind, method and id in a proxy that passes bytes.
  std::optional<FrameKind> kind{};
  /// Of a call; of a reply, note or cancel, that of its call. The proxy remembers the calls with
  /// the 1024 highest ids of a connection, and is silent about others.
  std::string_view method{};
  std::uint64_t id = 0;
  std::size_t size = 0;  ///< In bytes, with its header.
};

/// What happens to a frame. By default it is passed on.
///
/// One frame can have several of these fates: then half_open comes first, then a cut before it,
/// then a drop, and the others together.
struct Fate {
  /// How often it is passed on: 0 drops it, 2 duplicates it. At most kCopiesMax.
  std::uint32_t copies = 1;
  /// How much later. The frames behind it wait for it: a delay never changes the order.
  Duration delay{};
  /// Reorders: the frame is held back until so many later frames of its direction and connection
  /// have passed, but for hold_back at most. It passes at once when its sender closes the
  /// connection, because no later frame will come.
  std::uint32_t behind = 0;
  Duration hold_back = std::chrono::seconds(1);

  enum class Cut : std::uint8_t {
    kNo,
    kBefore,  ///< At once; what the connection still holds is lost.
    kAfter,   ///< When it was passed on, and the frames before it; with copies = 0, at once.
  };
  /// Whether both ends see the connection closed.
  Cut cut = Cut::kNo;

  enum class HalfOpen : std::uint8_t { kNo, kDirection, kBoth };
  /// From this frame on, everything is swallowed that comes in its direction, or in both, and so is
  /// the news that the sender has closed. What the proxy took before is still passed.
  HalfOpen half_open = HalfOpen::kNo;

  static constexpr std::uint32_t kCopiesMax = 16;
  /// Of a delay and of a hold_back.
  static constexpr Duration kTimeMax = std::chrono::hours(1);
};
/// kInvalidArgument: it is outside of its bounds, or a time is negative.
[[nodiscard]] Status check(const Fate& fate);

/// Decides. Called on the loop's thread of the proxy's transport, for each frame once, in the order
/// of arrival; must not block, nor destroy the proxy. When it throws, or its fate is outside of the
/// bounds, the connection is cut, and counted as a failure of the plan.
class FaultPlan {
 public:
  virtual ~FaultPlan() = default;
  [[nodiscard]] virtual Fate fate(const PassingFrame& frame) = 0;
};

}  // namespace pv2
