// SPDX-License-Identifier: Apache-2.0
//
// What goes with a submission besides the procedure itself, whether a caller or a step submits it.

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
  /// every retry. A nonce is forgotten with its result (acknowledged, or RetentionPolicy::ttl), so
  /// a later retry would begin a second procedure. With this set, such a retry is refused as
  /// kExpired, unless the nonce is still known. Has to be sooner than `ttl` from now, if there is a
  /// `ttl` (kInvalidArgument). Not part of the fingerprint; not stored.
  std::optional<WallTime> expires_at{};
  /// Who asks; shown in listings. At most limits::kOwnerBytes (kInvalidArgument).
  std::string owner{};
  /// The procedure takes no step and no lock before this much time has passed since the submission.
  /// Durable: after a restart it waits for what is left. Not negative. Not part of the fingerprint
  /// of a nonce.
  std::optional<Duration> delay{};
  /// Like `delay`, as a time of the wall clock; a time that has passed starts the procedure at
  /// once. At most one of the two may be set.
  std::optional<WallTime> start_at{};
};

/// What the failure of a child means for the tree that it belongs to.
enum class OnFailure : std::uint8_t {
  kFailTree,  ///< The whole tree is undone.
  /// The child and what it spawned are undone; then the child has ended, and its parent is told
  /// (StepContext::children()). Nothing else in the tree is touched.
  kReport,
};

/// When a child is undone, if its tree is undone.
enum class UndoOrder : std::uint8_t {
  kReverse,  ///< The steps of all members, in the reverse order of their records.
  /// At the same time as those siblings, spawned by the same step, that are kConcurrent too:
  /// nothing that one of them (or what it spawned) did depends on what another did. Its own steps
  /// keep the reverse order among themselves and with all other steps.
  kConcurrent,
};

/// What goes with a child. Durable with it.
struct SpawnOptions {
  OnFailure on_failure = OnFailure::kFailTree;
  UndoOrder undo_order = UndoOrder::kReverse;
};

}  // namespace pv2
