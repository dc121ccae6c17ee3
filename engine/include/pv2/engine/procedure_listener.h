// SPDX-License-Identifier: Apache-2.0
//
// What a host can be told of procedures as they come and go. News are told after they are durable,
// and are not kept: a host that was away looks at the listing.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/procedure_state.h>
#include <pv2/base/status.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "pv2/engine/registration.h"

namespace pv2 {

/// Something that has become durable.
struct ProcedureNews {
  enum class Kind : std::uint8_t {
    kAdded,     ///< Submitted, or spawned.
    kFinished,  ///< It succeeded, or was undone: `state` and `error` say which and why.
    /// It waits for an operator. The news name the member that has used up its attempts, or the
    /// head of what can neither be finished nor undone: the root, or the child whose failure is
    /// reported.
    kParked,
    kQuarantined,  ///< Its tree cannot be understood; the news name the root.
    /// A step of it, or the undo of a step, has failed 10 times, or twice as often as when this was
    /// last told, and is tried again: `error` says why.
    kRetrying,
  };

  Kind kind = Kind::kAdded;
  ProcedureId id;
  ProcedureId root;
  std::string type;
  ProcedureState state = ProcedureState::kRunnable;
  Status error;
  /// How many news before this one were told to nobody, because kWaitingMax waited for a slow
  /// listener.
  std::uint64_t missed = 0;

  /// How many news may wait for slow listeners. 16 384: at 10 000 a second a listener may stop for
  /// a second and a half; they take about 3 MB.
  static constexpr std::size_t kWaitingMax = 16'384;
};

/// May call any asynchronous verb of the executor. A slow listener delays the news after it, and
/// nothing else.
using ProcedureListener = std::function<void(const ProcedureNews&)>;

/// What ProcedureExecutor::listen() returns. It ends when it is destroyed, or another is assigned
/// to it ({} ends it early): then its listener is not called any more. On a thread of the executor
/// (a listener that ends its own subscription) a call that is under way may still be running. It
/// may outlive its executor; then nothing is left to end.
///
/// Owned by one thread at a time. A default-made or moved-from Subscription is none.
class [[nodiscard]] Subscription {
 public:
  Subscription() = default;

 private:
  friend class ProcedureExecutor;
  explicit Subscription(internal::Registration made) : made_(std::move(made)) {}

  internal::Registration made_;
};

}  // namespace pv2
