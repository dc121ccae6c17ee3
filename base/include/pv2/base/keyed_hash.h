// SPDX-License-Identifier: Apache-2.0
//
// Hashes of keys that clients choose: nonces, the rows of nonces, names of locks. They depend on a
// secret of the process. A client that knew the hash could choose thousands of keys with one hash,
// and a table would compare each of these keys with all the others. The secret, and with it the
// order of a hash table, differs from process to process. Whoever lists such a table sorts it
// first.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace pv2::internal {

struct HashSecret {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

/// Draws it from the randomness of the system. Without that it is where the system has placed the
/// memory of this process.
[[nodiscard]] HashSecret draw_hash_secret() noexcept;

/// That of this process. The first call draws it, so that objects with static lifetime may hash.
inline const HashSecret& hash_secret() noexcept {
  static const HashSecret secret = draw_hash_secret();
  return secret;
}

/// Both halves of the product: whoever does not know the factors cannot say which products have the
/// same.
inline std::uint64_t fold_product(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{a} * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// Of all bytes, 16 at a time. Thread-safe; allocates nothing.
inline std::uint64_t keyed_hash(std::string_view bytes, const HashSecret& secret) noexcept {
  std::uint64_t hash = secret.second ^ bytes.size();
  while (true) {
    std::uint64_t words[2] = {0, 0};
    const std::size_t taken = bytes.size() < sizeof words ? bytes.size() : sizeof words;
    if (taken != 0) std::memcpy(words, bytes.data(), taken);
    hash = fold_product(words[0] ^ secret.first, words[1] ^ hash);
    if (taken == bytes.size()) return hash;
    bytes.remove_prefix(taken);
  }
}

/// keyed_hash() with the secret of this process, for tables of the standard library.
struct KeyedHash {
  std::size_t operator()(std::string_view bytes) const noexcept {
    return static_cast<std::size_t>(keyed_hash(bytes, secret));
  }
  HashSecret secret = hash_secret();
};

}  // namespace pv2::internal
