// SPDX-License-Identifier: Apache-2.0
//
// What goes with a submission beside the procedure itself, whether a caller submits it or a step.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>

#include <optional>
#include <string>

namespace pv2 {

/// What goes with a submission.
struct SubmitOptions {
  /// Names the submission: the same nonce with the same arguments returns the first procedure's id.
  Nonce nonce{};
  /// Until when the client may still send this submission; goes with a nonce, and is the same in
  /// every retry. A nonce is forgotten with its result (acknowledged, or RetentionPolicy::ttl): a
  /// retry that comes after that would begin a second procedure. With this it is refused as
  /// kExpired instead, unless the nonce is still known. Has to be sooner than `ttl` from now, if
  /// there is one (kInvalidArgument). Not part of the fingerprint; not stored.
  std::optional<WallTime> expires_at{};
  /// Who asks; shown in listings. At most limits::kOwnerBytes (kInvalidArgument).
  std::string owner{};
  /// It takes no step and no lock before this time has passed since the submission. Durable: what
  /// is left after a restart is waited for. Not negative. Not part of the fingerprint of a nonce.
  std::optional<Duration> delay{};
  /// The same, as a time of the wall clock; one that has passed starts it at once. Not both.
  std::optional<WallTime> start_at{};
};

/// What the failure of a child means for the tree that it belongs to.
enum class OnFailure : std::uint8_t {
  kFailTree,  ///< The whole tree is undone.
  /// The child and what it spawned are undone; then the child has ended, and its parent is told
  /// (StepContext::children()). Nothing else in the tree is touched.
  kReport,
};

/// When a child is undone, if the tree that it belongs to is.
enum class UndoOrder : std::uint8_t {
  kReverse,  ///< Its steps, and those of all others, in the reverse order of their records.
  /// At the same time as those of its siblings, spawned by the same step, that say so too: nothing
  /// that one of them (or what it spawned) did depends on what another did. In the reverse order
  /// among themselves, and with everybody else's.
  kConcurrent,
};

/// What goes with a child. Durable with it.
struct SpawnOptions {
  OnFailure on_failure = OnFailure::kFailTree;
  UndoOrder undo_order = UndoOrder::kReverse;
};

}  // namespace pv2
