// SPDX-License-Identifier: Apache-2.0
//
// What a host can be told of procedures as they come and go. A piece of news is told after it is
// durable, and is not kept: a host that was away looks at the listing.

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
    kAdded,  ///< Submitted, or spawned.
    /// It succeeded, or was undone: `state` and `error` say which and why. A child that succeeded
    /// and is undone later, with its tree, is told twice.
    kFinished,
    /// It waits for an operator. `id` is the member that has used up its attempts, or the head of
    /// the domain that can neither be finished nor undone: the root, or the child whose failure is
    /// reported.
    kParked,
    kQuarantined,  ///< Its tree cannot be understood; `id` is the root.
    /// A step of it, or the undo of a step, has failed 10, 20, 40, 80, ... times and is tried
    /// again: `error` says why.
    kRetrying,
  };

  Kind kind = Kind::kAdded;
  ProcedureId id;
  ProcedureId root;
  std::string type;
  ProcedureState state = ProcedureState::kRunnable;
  Status error;
  /// How many pieces of news just before this one were told to no listener, because kWaitingMax
  /// waited for a slow one.
  std::uint64_t missed = 0;

  /// How many pieces of news may wait for slow listeners. 16 384: at 10 000 a second a listener may
  /// stop for a second and a half; they take about 3 MB.
  static constexpr std::size_t kWaitingMax = 16'384;
};

/// May call any asynchronous verb of the executor. A slow listener delays later news and nothing
/// else.
using ProcedureListener = std::function<void(const ProcedureNews&)>;

/// What ProcedureExecutor::listen() returns. The subscription ends when this object is destroyed or
/// assigned to ({} ends the subscription early): then its listener is not called any more. If that
/// happens on a thread of the executor (a listener ends its own subscription), a call that is under
/// way may still be running. A Subscription may outlive its executor.
///
/// Owned by one thread at a time. A default-made or moved-from Subscription is empty.
class [[nodiscard]] Subscription {
 public:
  Subscription() = default;

 private:
  friend class ProcedureExecutor;
  explicit Subscription(internal::Registration made) : made_(std::move(made)) {}

  internal::Registration made_;
};

}  // namespace pv2
