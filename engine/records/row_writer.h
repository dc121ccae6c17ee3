// SPDX-License-Identifier: Apache-2.0
//
// RowWriter: writes a row and appends it to a string. It writes into room for the largest possible
// row, without further checks of its size. So the string grows once, not with each field, and only
// by what the row has: the largest row is several times as long, and to fill so much memory in each
// record costs more than to copy the row. The caller computes the size; a larger row fails an
// assertion.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/frame.h>
#include <pv2/base/wire.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
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

  explicit RowWriter(std::size_t bytes_max) {
    if (bytes_max > kRoom) more_room_ = std::make_unique_for_overwrite<char[]>(bytes_max);
    begin_ = at_ = more_room_ ? more_room_.get() : room_;
    end_ = begin_ + bytes_max;
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
    PV2_ASSERT(at_ <= end_ && bytes.size() <= static_cast<std::size_t>(end_ - at_),
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

  /// Appends what was written to `out`.
  void append_to(std::string& out) const {
    PV2_ASSERT(at_ <= end_, "a row fits the room that was made for it");
    out.append(begin_, at_);
  }

 private:
  static constexpr std::size_t kRoom = 2048;  // for most rows; others take it from the heap

  char* begin_;
  char* at_;
  char* end_;
  std::unique_ptr<char[]> more_room_;
  char room_[kRoom];
};

}  // namespace pv2
