// SPDX-License-Identifier: Apache-2.0
//
// Each of two 64-bit lanes takes 8 bytes from every block of 16. A last block that is shorter is
// filled up with zeros, and the length is mixed in at the end.

#include "pv2/base/hash128.h"

#include <bit>
#include <cstring>

namespace pv2 {
namespace {

constexpr std::size_t kBlock = 16;
constexpr std::uint64_t kFirst = 0x87c37b91114253d5;
constexpr std::uint64_t kSecond = 0x4cf5ad432745937f;

struct Block {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

// Reads at most 16 bytes and fills the rest of the block with zeros.
Block read_block(const char* at, std::size_t size) noexcept {
  static_assert(std::endian::native == std::endian::little, "words of a block are little-endian");
  Block block;
  char bytes[kBlock] = {};  // NOLINT(*-avoid-c-arrays)
  std::memcpy(bytes, at, size);
  std::memcpy(&block.first, bytes, sizeof block.first);
  std::memcpy(&block.second, bytes + sizeof block.first, sizeof block.second);
  return block;
}

std::uint64_t spread_first(std::uint64_t word) noexcept {
  return std::rotl(word * kFirst, 31) * kSecond;
}
std::uint64_t spread_second(std::uint64_t word) noexcept {
  return std::rotl(word * kSecond, 33) * kFirst;
}

std::uint64_t finish(std::uint64_t word) noexcept {
  word ^= word >> 33;
  word *= 0xff51afd7ed558ccd;
  word ^= word >> 33;
  word *= 0xc4ceb9fe1a85ec53;
  word ^= word >> 33;
  return word;
}

}  // namespace

Hash128 hash128(std::string_view bytes) noexcept {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= kBlock; left -= kBlock, at += kBlock) {
    const Block block = read_block(at, kBlock);
    first ^= spread_first(block.first);
    first = std::rotl(first, 27) + second;
    first = first * 5 + 0x52dce729;
    second ^= spread_second(block.second);
    second = std::rotl(second, 31) + first;
    second = second * 5 + 0x38495ab5;
  }
  if (left != 0) {
    const Block block = read_block(at, left);
    first ^= spread_first(block.first);
    second ^= spread_second(block.second);
  }
  first ^= bytes.size();
  second ^= bytes.size();
  first += second;
  second += first;
  first = finish(first);
  second = finish(second);
  first += second;
  second += first;
  return {first, second};
}

}  // namespace pv2
