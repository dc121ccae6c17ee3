// SPDX-License-Identifier: Apache-2.0
//
// SegmentKey: a key in the index of a segment. Nearly all keys are short, and are kept in the index
// itself: to compare one with a key that lies somewhere in the segment's bytes would mean a miss of
// the processor's cache, and there are millions of comparisons per second.

#pragma once

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

  struct Hash {
    using is_avalanching = void;
    std::size_t operator()(const SegmentKey& key) const noexcept {
      if (key.is_long()) return std::hash<std::string_view>()(key.long_view());
      std::uint64_t hash = 0;
      for (const std::uint64_t word : key.words_) hash = mix(hash ^ word);
      return hash;
    }
  };

 private:
  // The last byte is the length of a short key, or kLong's.
  static constexpr int kSizeShift = 56;
  static constexpr std::uint64_t kLong = std::uint64_t{0xFF} << kSizeShift;

  // Both halves of a product with an odd number whose bits are half ones: each bit of the word
  // changes about half of the bits of the result.
  static std::uint64_t mix(std::uint64_t word) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide{word ^ 0x9E3779B97F4A7C15U} * 0xD6E8FEB86659FD93U;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  [[nodiscard]] bool is_long() const noexcept { return words_[2] == kLong; }
  [[nodiscard]] std::string_view long_view() const noexcept {
    const char* data = nullptr;
    std::memcpy(&data, &words_[0], sizeof data);
    return {data, words_[1]};
  }

  std::array<std::uint64_t, 3> words_;
};

}  // namespace pv2
