// SPDX-License-Identifier: Apache-2.0
//
// FrameReader: cuts a stream of bytes into frames (base/frame.h). It keeps at most one frame that
// has not arrived whole, and refuses one that is too large before it keeps any of it.

#pragma once

#include <pv2/base/status.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace pv2 {

/// Owned by one thread.
class FrameReader {
 public:
  /// A frame with more than `frame_bytes_max` bytes, without its header, is refused.
  explicit FrameReader(std::size_t frame_bytes_max) noexcept : limit_(frame_bytes_max) {}
  void set_limit(std::size_t frame_bytes_max) noexcept { limit_ = frame_bytes_max; }

  /// Takes what has arrived. Then next() is to be called until it gives no frame, or fails; `bytes`
  /// stay valid until then.
  void feed(std::string_view bytes) noexcept { input_ = bytes; }

  struct Next {
    bool has_frame = false;
    std::string_view bytes{};  ///< Without the header; valid until the next call.
    Status status{};
  };
  /// The next whole frame. Without one, what is left is kept for the next feed(). kCorruption: a
  /// checksum is wrong; kResourceExhausted: a frame is too large. Then nothing more can be read.
  [[nodiscard]] Next next();
  /// How many bytes of an incomplete frame are kept.
  [[nodiscard]] std::size_t kept() const noexcept { return is_given_ ? 0 : kept_.size(); }

 private:
  // Both sizes include the header.
  [[nodiscard]] bool is_too_large(std::size_t frame_size) const noexcept;
  [[nodiscard]] Next too_large(std::size_t frame_size) const;
  void keep_up_to(std::size_t size);
  Next next_of_kept();

  std::size_t limit_;
  std::string kept_;        // the beginning of a frame, from earlier feeds
  std::string_view input_;  // what is not read yet of this feed
  bool is_given_ = false;   // `kept_` is the frame that next() has returned
};

}  // namespace pv2
