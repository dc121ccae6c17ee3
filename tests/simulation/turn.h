// SPDX-License-Identifier: Apache-2.0
//
// Turn: one visit of a step, or the undo of a step, ordered as one procedure takes its turns. Runs
// of the same turn (retries, waits, crashes) are equal. Plain data.

#pragma once

#include <pv2/engine/step_context.h>

#include <compare>
#include <cstdint>
#include <string>

namespace pv2::testing {

struct Turn {
  bool undo = false;
  std::uint64_t place = 0;  ///< Visits count up; undone steps count down.

  friend auto operator<=>(const Turn&, const Turn&) = default;
};

/// The number of the visit in an effect key; for an undo, a number that no visit has.
[[nodiscard]] inline std::uint64_t visit_of(const StepContext& ctx) {
  const std::string key = ctx.effect_key();
  const std::size_t at = key.find(".v");
  return at == key.npos ? UINT64_MAX : std::stoull(key.substr(at + 2));
}

[[nodiscard]] inline Turn turn_of(const StepContext& ctx) {
  const std::uint64_t visit = visit_of(ctx);
  if (visit == UINT64_MAX) return {true, UINT64_MAX - ctx.step()};
  return {false, visit};
}

/// Where a run is, for a finding.
[[nodiscard]] inline std::string place(const StepContext& ctx) {
  return "step " + std::to_string(ctx.step()) + " of procedure " + std::to_string(ctx.id().value);
}

}  // namespace pv2::testing
