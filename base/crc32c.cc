// SPDX-License-Identifier: Apache-2.0
//
// Computes the checksum in one of two ways, chosen at run time: with the CRC32 instruction of SSE
// 4.2, eight bytes at a time, or with Boost.CRC's table.

#include "pv2/base/crc32c.h"

#include <boost/crc.hpp>
#include <cstring>

#include "crc32c_portable.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace pv2 {
namespace internal {
namespace {

std::uint32_t reversed(std::uint32_t bits) noexcept {
  std::uint32_t result = 0;
  for (int i = 0; i < 32; ++i, bits >>= 1) result = (result << 1) | (bits & 1);
  return result;
}

}  // namespace

std::uint32_t crc32c_portable(std::string_view bytes, std::uint32_t seed) noexcept {
  // Boost's register holds the bits in reverse order, and Boost inverts them only at the end.
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc(reversed(~seed));
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

}  // namespace internal

#if defined(__x86_64__)

namespace {

template <class Word>
Word load(const char* at) noexcept {
  Word word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(std::string_view bytes,
                                                             std::uint32_t seed) noexcept {
  std::uint64_t crc = ~seed;
  const char* at = bytes.data();
  const char* const words_end = at + bytes.size() / 8 * 8;
#pragma GCC unroll 4
  for (; at != words_end; at += 8) crc = _mm_crc32_u64(crc, load<std::uint64_t>(at));
  auto tail = static_cast<std::uint32_t>(crc);
  if ((bytes.size() & 4) != 0) {
    tail = _mm_crc32_u32(tail, load<std::uint32_t>(at));
    at += 4;
  }
  if ((bytes.size() & 2) != 0) {
    tail = _mm_crc32_u16(tail, load<std::uint16_t>(at));
    at += 2;
  }
  if ((bytes.size() & 1) != 0) tail = _mm_crc32_u8(tail, static_cast<unsigned char>(*at));
  return ~tail;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed) noexcept {
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  return has_instruction ? crc32c_sse42(bytes, seed) : internal::crc32c_portable(bytes, seed);
}

#else

std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed) noexcept {
  return internal::crc32c_portable(bytes, seed);
}

#endif

}  // namespace pv2
