// SPDX-License-Identifier: Apache-2.0
//
// The fingerprint of an operation: what tells a repeated request from another request with the same
// key.

#pragma once

#include <pv2/base/hash128.h>
#include <pv2/base/wire.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace pv2 {

/// Over the name of an operation, its arguments and who asks. The parts are hashed with their
/// lengths, so {"ab", "c"} and {"a", "bc"} differ. Deadlines, priorities and names for tracing do
/// not belong to it: a repeated request may have others.
[[nodiscard]] inline Hash128 fingerprint_of(std::initializer_list<std::string_view> parts) {
  std::string bytes;
  for (const std::string_view part : parts) {
    append_varint(bytes, part.size());
    bytes.append(part);
  }
  return hash128(bytes);
}

}  // namespace pv2
