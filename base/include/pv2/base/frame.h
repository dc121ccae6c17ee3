// SPDX-License-Identifier: Apache-2.0
//
// The frame around bytes that are stored, so that a reader knows whether they are what was written:
//
//     4 bytes   CRC-32C of everything that follows in the frame (little-endian, like the length)
//     4 bytes   number of bytes
//     n bytes
//
// The checksum covers the length, so a run of zeros is not a frame. Frames follow one another
// without padding. It says nothing about what the bytes mean, and repairs nothing.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace pv2 {

/// What a frame adds to its bytes.
inline constexpr std::size_t kFrameHeaderBytes = 8;

/// Appends `bytes` (below 4 GiB) in a frame.
void append_frame(std::string& out, std::string_view bytes);

/// Takes the first frame off `input` and returns its bytes, a view into the same memory. When the
/// frame is torn or its checksum wrong there is no value, and `input` stays as it was.
[[nodiscard]] std::optional<std::string_view> read_frame(std::string_view& input) noexcept;

/// How many bytes of `input` its first frame takes, by the length that it says; the checksum is not
/// looked at. No value when `input` is shorter.
[[nodiscard]] std::optional<std::size_t> size_of_frame(std::string_view input) noexcept;

/// Makes a frame of the `size` bytes at `frame` + kFrameHeaderBytes by filling in what stands
/// before them.
void seal_frame(char* frame, std::size_t size) noexcept;

/// Builds a frame in place, without a temporary string: construct it, append the bytes to `out`,
/// finish(). A frame that was not finished (an error, an exception) is cut off `out` again. Owned
/// by one thread.
class FrameWriter {
 public:
  explicit FrameWriter(std::string& out);
  ~FrameWriter();
  FrameWriter(const FrameWriter&) = delete;
  FrameWriter& operator=(const FrameWriter&) = delete;

  /// Completes the frame around what was appended to `out` since construction. Once.
  void finish();

 private:
  std::string& out_;
  std::size_t start_;
  bool finished_ = false;
};

}  // namespace pv2
