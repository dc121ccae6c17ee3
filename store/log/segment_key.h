// SPDX-License-Identifier: Apache-2.0
//
// SegmentKey: a key in the index of a segment. Nearly all keys are short, and are kept in the index
// itself: to compare one with a key that lies somewhere in the segment's bytes would mean a miss of
// the processor's cache, and there are millions of comparisons per second.

#pragma once

#include <pv2/base/keyed_hash.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace pv2 {

/// A value. A key that is longer than kShort is a view, whose bytes the segment keeps.
class SegmentKey {
 public:
  /// The engine's keys have up to 22 bytes.
  static constexpr std::size_t kShort = 23;

  explicit SegmentKey(std::string_view key) noexcept {
    if (key.size() <= kShort) {
      char bytes[sizeof words_]{};
      std::memcpy(bytes, key.data(), key.size());
      bytes[kShort] = static_cast<char>(key.size());
      std::memcpy(words_.data(), bytes, sizeof bytes);
      return;
    }
    const char* const data = key.data();
    std::memcpy(&words_[0], &data, sizeof data);
    words_[1] = key.size();
    words_[2] = kLong;
  }

  [[nodiscard]] std::size_t size() const noexcept {
    return is_long() ? words_[1] : words_[2] >> kSizeShift;
  }

  friend bool operator==(const SegmentKey& a, const SegmentKey& b) noexcept {
    if (a.words_ == b.words_) return true;
    return a.is_long() && b.is_long() && a.long_view() == b.long_view();
  }

  /// Depends on the secret of the process, because the key of a nonce's row is the client's choice.
  struct Hash {
    using is_avalanching = void;
    std::size_t operator()(const SegmentKey& key) const noexcept {
      if (key.is_long()) return internal::keyed_hash(key.long_view(), secret);
      const auto& [first, second, third] = key.words_;
      return internal::fold_product(
          third ^ secret.first,
          internal::fold_product(first ^ secret.first, second ^ secret.second));
    }
    internal::HashSecret secret = internal::hash_secret();
  };

 private:
  // The last byte is the length of a short key, or kLong's.
  static constexpr int kSizeShift = 56;
  static constexpr std::uint64_t kLong = std::uint64_t{0xFF} << kSizeShift;

  [[nodiscard]] bool is_long() const noexcept { return words_[2] == kLong; }
  [[nodiscard]] std::string_view long_view() const noexcept {
    const char* data = nullptr;
    std::memcpy(&data, &words_[0], sizeof data);
    return {data, words_[1]};
  }

  std::array<std::uint64_t, 3> words_;
};

}  // namespace pv2
