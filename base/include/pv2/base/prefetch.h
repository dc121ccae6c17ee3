// SPDX-License-Identifier: Apache-2.0
//
// prefetch(): a hint to the processor.

#pragma once

#include <cstddef>

namespace pv2 {

/// Has the processor fetch `object` into its cache while other work is done. Only a hint about an
/// address, which is not used otherwise: the object may have been destroyed. Not nullptr.
template <class T>
void prefetch(const T* object) noexcept {
  constexpr std::size_t kCacheLine = 64;
  constexpr std::size_t kSize = sizeof(T);  // NOLINT(bugprone-sizeof-expression): T is the object
  const char* const bytes = reinterpret_cast<const char*>(object);
  for (std::size_t at = 0; at < kSize; at += kCacheLine) __builtin_prefetch(bytes + at);
  __builtin_prefetch(bytes + kSize - 1);  // an object need not begin where a line begins
}

}  // namespace pv2
