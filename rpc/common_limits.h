// SPDX-License-Identifier: Apache-2.0
//
// Limits that a client and a server both keep, and the answer to an option that is not allowed.

#pragma once

#include <pv2/base/status.h>

#include <cstddef>
#include <string>
#include <utility>

namespace pv2 {

/// Of the name of a method.
inline constexpr std::size_t kMethodBytesMax = 256;
/// Of a token that proves who calls.
inline constexpr std::size_t kTokenBytesMax = 1024;

[[nodiscard]] inline Status invalid_option(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message)};
}

}  // namespace pv2
