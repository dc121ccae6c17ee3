// SPDX-License-Identifier: Apache-2.0
//
// Order: an operation that the master has dispatched to this server, with a number that says which
// of two orders is the later one. Ids of procedures do not say that: the undo of a split opens a
// region again under the id of the split, which may be older than the last opening.

#pragma once

#include <pv2/base/status.h>
#include <pv2/procedures/server_calls.h>

#include <cstdint>
#include <string>

#include "wire/server_messages.h"

namespace pv2::cluster {

/// A value.
struct Order {
  RemoteOperation operation;
  /// Greater than that of every order that a master had dispatched, to any server, before it
  /// dispatched this one first. Copies of a dispatch may have several; the first one to come
  /// counts.
  std::uint64_t number = 0;
};

/// The number of the first operation of a request: the epoch, then the count within the epoch.
/// kInvalidArgument: a number of the request would leave its 32 bits.
[[nodiscard]] inline Result<std::uint64_t> first_order_number(const DispatchRequest& request) {
  constexpr std::uint64_t kEnd = std::uint64_t{1} << 32;
  if (request.epoch < kEnd && request.first < kEnd &&
      request.operations.size() < kEnd - request.first) {
    return request.epoch * kEnd + request.first;
  }
  return Status(StatusCode::kInvalidArgument, "no number for operation " +
                                                  std::to_string(request.first) + " of epoch " +
                                                  std::to_string(request.epoch));
}

}  // namespace pv2::cluster
