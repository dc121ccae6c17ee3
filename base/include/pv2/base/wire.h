// SPDX-License-Identifier: Apache-2.0
//
// Protobuf's wire format, the part of it that pv2 stores: varints, fixed 32 and 64 bits,
// length-delimited bytes. Not a message library: what a number means is the caller's business
// (fields.h, or a record's own loop). Writing cannot fail. Reading never throws and never looks
// outside its input; malformed input ends the loop and is reported by status(). Groups, which
// protobuf itself has retired, count as malformed.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace pv2 {

class Status;

enum class WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

/// "a varint", "bytes": for messages.
[[nodiscard]] std::string_view to_string(WireType type) noexcept;

/// The largest field number that protobuf knows.
inline constexpr std::uint32_t kWireNumberMax = (1U << 29) - 1;
/// The longest varint: ten groups of seven bits hold 64.
inline constexpr std::size_t kVarintBytesMax = 10;

/// Maps small negative numbers to small unsigned ones: 0, -1, 1, -2 become 0, 1, 2, 3.
[[nodiscard]] constexpr std::uint64_t zigzag(std::int64_t value) noexcept {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
[[nodiscard]] constexpr std::int64_t unzigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>((value >> 1) ^ (0 - (value & 1)));
}

[[nodiscard]] constexpr std::uint64_t make_tag(std::uint32_t number, WireType type) noexcept {
  return (static_cast<std::uint64_t>(number) << 3) | static_cast<std::uint64_t>(type);
}

/// How many bytes the varint of `value` has.
[[nodiscard]] constexpr std::size_t varint_size(std::uint64_t value) noexcept {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}

namespace internal {

/// Collects a tag and what follows it, so that one append reaches the string. Owned by one thread.
class WireScratch {
 public:
  WireScratch& varint(std::uint64_t value) noexcept {
    while (value >= 0x80) {
      bytes_[size_++] = static_cast<char>(value | 0x80);
      value >>= 7;
    }
    bytes_[size_++] = static_cast<char>(value);
    return *this;
  }
  WireScratch& tag(std::uint32_t number, WireType type) noexcept {
    return varint(make_tag(number, type));
  }
  template <class Word>
  WireScratch& fixed(Word word) noexcept {
    static_assert(std::endian::native == std::endian::little, "stored words are little-endian");
    std::memcpy(bytes_ + size_, &word, sizeof word);
    size_ += sizeof word;
    return *this;
  }
  void append_to(std::string& out) const { out.append(bytes_, size_); }

 private:
  char bytes_[2 * kVarintBytesMax];  // NOLINT: filled before it is read
  std::size_t size_ = 0;
};

}  // namespace internal

// Bare values, for lengths and packed lists.

inline void append_varint(std::string& out, std::uint64_t value) {
  internal::WireScratch().varint(value).append_to(out);
}
inline void append_fixed32(std::string& out, std::uint32_t value) {
  internal::WireScratch().fixed(value).append_to(out);
}
inline void append_fixed64(std::string& out, std::uint64_t value) {
  internal::WireScratch().fixed(value).append_to(out);
}

// Whole fields: tag and value.

/// Protobuf's uint64, bool and enum.
inline void append_varint_field(std::string& out, std::uint32_t number, std::uint64_t value) {
  internal::WireScratch().tag(number, WireType::kVarint).varint(value).append_to(out);
}
/// Protobuf's sint64.
inline void append_sint_field(std::string& out, std::uint32_t number, std::int64_t value) {
  append_varint_field(out, number, zigzag(value));
}
/// Protobuf's fixed32 and float.
inline void append_fixed32_field(std::string& out, std::uint32_t number, std::uint32_t value) {
  internal::WireScratch().tag(number, WireType::kFixed32).fixed(value).append_to(out);
}
/// Protobuf's fixed64 and double.
inline void append_fixed64_field(std::string& out, std::uint32_t number, std::uint64_t value) {
  internal::WireScratch().tag(number, WireType::kFixed64).fixed(value).append_to(out);
}
/// Protobuf's bytes, string and embedded message.
inline void append_length_delimited(std::string& out, std::uint32_t number,
                                    std::string_view bytes) {
  internal::WireScratch().tag(number, WireType::kBytes).varint(bytes.size()).append_to(out);
  out.append(bytes);
}

/// Walks over the fields of one message:
///
///     WireReader reader(bytes);
///     while (reader.next()) {
///       switch (reader.number()) {
///         case 1: id = reader.varint(); break;
///         case 2: name = reader.bytes(); break;   // other numbers are skipped by not asking
///       }
///     }
///     if (!reader.ok()) return reader.status();
///
/// Asking for a value of another kind than was written gives 0 or empty bytes, and fails the
/// reader. The input must outlive the views. Owned by one thread.
class WireReader {
 public:
  explicit WireReader(std::string_view input) noexcept
      : begin_(input.data()), at_(begin_), end_(begin_ + input.size()) {}

  /// Moves to the next field; false at the end and after a failure.
  bool next() noexcept {
    if (at_ == end_ || fault_ != Fault::kNone) return false;
    std::uint64_t tag = 0;
    if (!take_varint(tag)) return false;
    if ((tag >> 3) == 0 || (tag >> 3) > kWireNumberMax) return fail(Fault::kNumber);
    number_ = static_cast<std::uint32_t>(tag >> 3);
    type_ = static_cast<WireType>(tag & 7);
    switch (type_) {
      case WireType::kVarint:
        return take_varint(value_);
      case WireType::kBytes:
        return take_bytes();
      case WireType::kFixed64:
        return take_fixed<std::uint64_t>();
      case WireType::kFixed32:
        return take_fixed<std::uint32_t>();
    }
    return fail(Fault::kUnknownType);  // 3, 4: groups; 6, 7: nothing yet
  }

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  [[nodiscard]] WireType type() const noexcept { return type_; }

  [[nodiscard]] std::uint64_t varint() noexcept { return expect(WireType::kVarint) ? value_ : 0; }
  [[nodiscard]] std::int64_t sint() noexcept { return unzigzag(varint()); }
  [[nodiscard]] std::uint64_t fixed64() noexcept { return expect(WireType::kFixed64) ? value_ : 0; }
  [[nodiscard]] std::uint32_t fixed32() noexcept {
    return expect(WireType::kFixed32) ? static_cast<std::uint32_t>(value_) : 0;
  }
  [[nodiscard]] std::string_view bytes() noexcept {
    return expect(WireType::kBytes) ? std::string_view(data_, value_) : std::string_view();
  }
  /// The number as it was written, whichever of the three numeric types that was; for bytes, their
  /// length.
  [[nodiscard]] std::uint64_t raw_value() const noexcept { return value_; }

  /// Takes the next bare value of a packed list. Returns false, and fails the reader, when none is
  /// left.
  bool take_varint(std::uint64_t& value) noexcept {
    if (at_ != end_ && static_cast<unsigned char>(*at_) < 0x80) {  // most numbers are below 128
      value = static_cast<unsigned char>(*at_++);
      return true;
    }
    return take_long_varint(value);
  }
  template <class Word>
  bool take_fixed_word(Word& word) noexcept {
    if (remaining() < sizeof word) return fail(Fault::kTorn);
    std::memcpy(&word, at_, sizeof word);
    at_ += sizeof word;
    return true;
  }
  [[nodiscard]] std::size_t remaining() const noexcept {
    return static_cast<std::size_t>(end_ - at_);
  }

  [[nodiscard]] bool ok() const noexcept { return fault_ == Fault::kNone; }
  /// OK, or kCorruption saying what is wrong and at which byte.
  Status status() const;

 private:
  enum class Fault : std::uint8_t { kNone, kTorn, kLongVarint, kNumber, kUnknownType, kOtherType };

  bool fail(Fault fault) noexcept {
    fault_ = fault;
    return false;
  }
  bool expect(WireType type) noexcept { return type_ == type || fail(Fault::kOtherType); }

  bool take_long_varint(std::uint64_t& value) noexcept {
    std::uint64_t result = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) return fail(Fault::kTorn);
      const auto byte = static_cast<unsigned char>(*at_++);
      if (shift == 63 && byte > 1) return fail(Fault::kLongVarint);  // more than 64 bits
      result |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) {
        value = result;
        return true;
      }
    }
    return fail(Fault::kLongVarint);
  }
  bool take_bytes() noexcept {
    if (!take_varint(value_)) return false;
    if (value_ > remaining()) return fail(Fault::kTorn);
    data_ = at_;
    at_ += value_;
    return true;
  }
  template <class Word>
  bool take_fixed() noexcept {
    Word word = 0;
    if (!take_fixed_word(word)) return false;
    value_ = word;
    return true;
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  const char* data_ = nullptr;
  std::uint64_t value_ = 0;
  std::uint32_t number_ = 0;
  WireType type_ = WireType::kVarint;
  Fault fault_ = Fault::kNone;
};

}  // namespace pv2
