// SPDX-License-Identifier: Apache-2.0
//
// The bounds of a fate, which plans check early and the proxy checks again, because a plan can be
// anybody's.

#include "pv2/rpc/fault_plan.h"

#include <string>

namespace pv2 {
namespace {

bool is_delay(Duration time) { return time >= Duration::zero() && time <= Fate::kTimeMax; }

}  // namespace

std::string_view to_string(Direction direction) noexcept {
  switch (direction) {
    case Direction::kToServer:
      return "to the server";
    case Direction::kToClient:
      return "to the client";
  }
  return "in no direction";
}

Status check(const Fate& fate) {
  if (fate.copies > Fate::kCopiesMax) {
    return {StatusCode::kInvalidArgument,
            "fate of a frame: " + std::to_string(fate.copies) + " copies are too many"};
  }
  if (!is_delay(fate.delay) || !is_delay(fate.hold_back)) {
    return {StatusCode::kInvalidArgument, "fate of a frame: a time is not from 0 to 1 hour"};
  }
  return {};
}

}  // namespace pv2
