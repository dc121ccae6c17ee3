// SPDX-License-Identifier: Apache-2.0
//
// RowWriter: writes a row at the end of a string. It makes the string long enough for the largest
// possible row, writes without further checks of its size, and cuts off the rest. So the string
// grows once, not with each field. The caller computes the size; a larger row fails an assertion.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/frame.h>
#include <pv2/base/wire.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace pv2 {

/// Owned by one thread. A record has some twenty numbers, most of them of one byte, so a call for
/// each would cost more than the number.
class RowWriter {
 public:
  /// The most bytes that a number, or the frame of a string or list, takes: a tag of two bytes and
  /// a varint.
  static constexpr std::size_t kFieldMax = 2 + kVarintBytesMax;

  RowWriter(std::string& out, std::size_t bytes_max) : out_(out) {
    const std::size_t start = out.size();
    out.resize(start + bytes_max);
    at_ = out.data() + start;
  }
  ~RowWriter() {
    const auto size = static_cast<std::size_t>(at_ - out_.data());
    PV2_ASSERT(size <= out_.size(), "a row fits the room that was made for it");
    out_.resize(size);
  }
  RowWriter(const RowWriter&) = delete;
  RowWriter& operator=(const RowWriter&) = delete;

  [[gnu::always_inline]] void put(std::uint64_t value) noexcept {
    char* at = at_;  // a write through a char* may change any member, so at_ would be read again
    for (; value >= 0x80; value >>= 7) *at++ = static_cast<char>(value | 0x80);
    *at++ = static_cast<char>(value);
    at_ = at;
  }
  void put_raw(std::string_view bytes) noexcept {
    PV2_ASSERT(bytes.size() <= static_cast<std::size_t>(out_.data() + out_.size() - at_),
               "a row fits the room that was made for it");
    if (!bytes.empty()) std::memcpy(at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  [[gnu::always_inline]] void varint(std::uint32_t number, std::uint64_t value) noexcept {
    put(make_tag(number, WireType::kVarint));
    put(value);
  }
  void sint(std::uint32_t number, std::int64_t value) noexcept { varint(number, zigzag(value)); }
  void fixed64(std::uint32_t number, std::uint64_t value) noexcept {
    put(make_tag(number, WireType::kFixed64));
    std::memcpy(at_, &value, sizeof value);  // little-endian, as every stored number outside a key
    at_ += sizeof value;
  }
  void bytes(std::uint32_t number, std::string_view value) noexcept {
    put(make_tag(number, WireType::kBytes));
    put(value.size());
    put_raw(value);
  }

  /// A packed list of varints: open it, put() each, close it. Its length has two bytes, which is
  /// enough for 16 KiB.
  [[nodiscard]] char* open_list(std::uint32_t number) noexcept {
    put(make_tag(number, WireType::kBytes));
    at_ += 2;
    return at_;
  }
  void close_list(char* list) noexcept {
    PV2_ASSERT(at_ >= list, "a list is closed at its end");
    const auto length = static_cast<std::size_t>(at_ - list);
    PV2_ASSERT(length < (1U << 14), "the lists of a record are bounded");
    list[-2] = static_cast<char>((length & 0x7F) | 0x80);
    list[-1] = static_cast<char>(length >> 7);
  }

  /// A frame (pv2/base/frame.h): open it, write its bytes, close it.
  [[nodiscard]] char* open_frame() noexcept {
    char* const frame = at_;
    at_ += kFrameHeaderBytes;
    return frame;
  }
  void close_frame(char* frame) noexcept {
    PV2_ASSERT(at_ >= frame + kFrameHeaderBytes, "a frame is closed at its end");
    seal_frame(frame, static_cast<std::size_t>(at_ - frame) - kFrameHeaderBytes);
  }

 private:
  std::string& out_;
  char* at_;
};

}  // namespace pv2
