// SPDX-License-Identifier: Apache-2.0
//
// Draws the secret, and hashes nonces with it. It does not fail: what hashes a key has no way to
// say so.

#include "pv2/base/keyed_hash.h"

#include <exception>
#include <random>

#include "pv2/base/ids.h"

namespace pv2::internal {

HashSecret draw_hash_secret() noexcept {
  try {
    std::random_device system;  // getrandom(2), or the processor's generator
    const auto word = [&system] { return (std::uint64_t{system()} << 32) | system(); };
    const std::uint64_t first = word();
    return {.first = first, .second = word()};
  } catch (const std::exception&) {
    const int on_stack = 0;
    static const int in_program = 0;
    const auto spread = [](const int& place) {
      return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&place)) *
             0x9E3779B97F4A7C15ULL;
    };
    return {.first = spread(on_stack), .second = spread(in_program)};
  }
}

}  // namespace pv2::internal

std::size_t std::hash<pv2::Nonce>::operator()(const pv2::Nonce& nonce) const noexcept {
  const pv2::internal::HashSecret& secret = pv2::internal::hash_secret();
  return pv2::internal::fold_product(nonce.group ^ secret.first, nonce.value ^ secret.second);
}
