// SPDX-License-Identifier: Apache-2.0
//
// Outcome: the one value that a step answers with. It says what comes next and nothing else; the
// engine makes it durable and then acts on it. An outcome is plain data and cannot fail.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/status.h>

#include <cstdint>
#include <optional>
#include <string>

namespace pv2 {

/// What a step, or the undoing of one, decided. Made by the helpers of Procedure and
/// StateMachineProcedure.
struct [[nodiscard]] Outcome {
  /// The numbers are persisted in histories.
  enum class Kind : std::uint8_t {
    /// This step is done; `next_step` follows, after the children spawned in it, if any.
    kNext = 0,
    /// The same step runs once more, behind others that are ready (after its children, if any).
    kAgain = 1,
    /// The procedure has succeeded with `result`, once the children spawned now have succeeded.
    kDone = 2,
    /// Run the same step again when something awaited arrives or `timeout` has passed.
    kWait = 3,
    /// It failed for now with `error`: the same step runs again, from the last durable image, after
    /// a back-off.
    kRetry = 4,
    /// It failed for good with `error`: the tree is undone.
    kFail = 5,
    /// In rollback: this step is undone.
    kUndone = 6,

    // Only in histories: what an operator ordered (RepairVerb). A step that answers one of these
    // has failed.
    kRetriedNow = 7,  ///< The step or undo was to be tried again at once.
    kSkipped = 8,     ///< The step counts as done, or as undone.
    kSentBack = 9,    ///< The tree was to be undone as far as it can be.
    kBypassed = 10,   ///< The tree was ended as it stood.
  };

  Kind kind = Kind::kAgain;
  std::uint32_t next_step = 0;
  std::string result{};
  Status error{};
  std::optional<Duration> timeout{};
  bool unsure = false;  ///< With kRetry: the attempt may have had its effect.
};

/// Whether there is such a kind: an Outcome that no helper of Procedure has made may hold any
/// number.
[[nodiscard]] constexpr bool is_known(Outcome::Kind kind) noexcept {
  return kind <= Outcome::Kind::kBypassed;
}

/// Whether a history entry records an operator's order, not what the procedure did.
[[nodiscard]] constexpr bool is_order(Outcome::Kind kind) noexcept {
  return kind >= Outcome::Kind::kRetriedNow;
}

}  // namespace pv2
