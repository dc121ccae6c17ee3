// SPDX-License-Identifier: Apache-2.0
//
// Draws the secret of the hashes of nonces. It does not fail: what hashes a nonce has no way to say
// so.

#include <cstdint>
#include <exception>
#include <random>

#include "pv2/base/ids.h"

namespace pv2::internal {

NonceSecret draw_nonce_secret() noexcept {
  try {
    std::random_device system;  // getrandom(2), or the processor's generator
    const auto word = [&system] { return (std::uint64_t{system()} << 32) | system(); };
    const std::uint64_t group = word();
    return {.group = group, .value = word()};
  } catch (const std::exception&) {
    const int on_stack = 0;
    static const int in_program = 0;
    const auto spread = [](const int& place) {
      return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&place)) *
             0x9E3779B97F4A7C15ULL;
    };
    return {.group = spread(on_stack), .value = spread(in_program)};
  }
}

}  // namespace pv2::internal
