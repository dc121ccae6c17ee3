// SPDX-License-Identifier: Apache-2.0
//
// The frame around stored bytes, by which a reader knows whether they are the bytes that were
// written:
//
//     4 bytes   CRC-32C of everything that follows in the frame (little-endian, like the length)
//     4 bytes   number of bytes
//     n bytes
//
// The checksum covers the length, so a run of zeros is not a frame. Frames follow one another
// without padding. A frame says nothing about what its bytes mean, and repairs nothing.

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
/// frame is torn or its checksum is wrong there is no value, and `input` stays as it was.
[[nodiscard]] std::optional<std::string_view> read_frame(std::string_view& input) noexcept;

/// How many bytes of `input` its first frame takes, according to the frame's length; the checksum
/// is not checked. No value when `input` is shorter than that.
[[nodiscard]] std::optional<std::size_t> size_of_frame(std::string_view input) noexcept;

/// How many bytes the frame takes that begins with `header` (kFrameHeaderBytes or more), according
/// to its length. For a reader that has not received the rest.
[[nodiscard]] std::size_t frame_size_from_header(std::string_view header) noexcept;

/// Makes a frame of the `size` bytes at `frame` + kFrameHeaderBytes by filling in the header before
/// them.
void seal_frame(char* frame, std::size_t size) noexcept;

/// Builds a frame in place, without a temporary string: construct it, append the bytes to `out`,
/// call finish(). The destructor cuts an unfinished frame (an error, an exception) off `out` again.
/// Owned by one thread.
class FrameWriter {
 public:
  explicit FrameWriter(std::string& out);
  ~FrameWriter();
  FrameWriter(const FrameWriter&) = delete;
  FrameWriter& operator=(const FrameWriter&) = delete;

  /// Completes the frame around what was appended to `out` since construction. To be called once.
  void finish();

 private:
  std::string& out_;
  std::size_t start_;
  bool finished_ = false;
};

}  // namespace pv2
