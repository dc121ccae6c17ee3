// SPDX-License-Identifier: Apache-2.0
//
// A frame that lies whole in what has arrived is given out where it lies. Only one that is cut by
// the end of a feed is copied, into `kept_`, and given out from there.

#include "pv2/rpc/frame_reader.h"

#include <fmt/format.h>
#include <pv2/base/assert.h>
#include <pv2/base/frame.h>

#include <algorithm>

namespace pv2 {
namespace {

// Memory for one large frame is given back; that of usual ones is used again.
constexpr std::size_t kKeptCapacityMax = std::size_t{64} << 10;

FrameReader::Next failed(Status status) { return {.status = std::move(status)}; }
Status wrong_checksum() {
  return {StatusCode::kCorruption, "a frame's checksum does not match its bytes"};
}

}  // namespace

bool FrameReader::is_too_large(std::size_t frame_size) const noexcept {
  return frame_size - kFrameHeaderBytes > limit_;
}

FrameReader::Next FrameReader::too_large(std::size_t frame_size) const {
  return failed(
      {StatusCode::kResourceExhausted, fmt::format("a frame has {} bytes, and {} are allowed",
                                                   frame_size - kFrameHeaderBytes, limit_)});
}

void FrameReader::keep_up_to(std::size_t size) {
  const std::size_t taken = std::min(size - kept_.size(), input_.size());
  kept_.append(input_.substr(0, taken));
  input_.remove_prefix(taken);
}

FrameReader::Next FrameReader::next_of_kept() {
  if (kept_.size() < kFrameHeaderBytes) keep_up_to(kFrameHeaderBytes);
  if (kept_.size() < kFrameHeaderBytes) return {};
  const std::size_t size = frame_size_from_header(kept_);
  if (is_too_large(size)) return too_large(size);
  keep_up_to(size);
  if (kept_.size() < size) return {};
  std::string_view whole = kept_;
  const auto bytes = read_frame(whole);
  if (!bytes) return failed(wrong_checksum());
  PV2_ASSERT(whole.empty(), "what is kept is one frame");
  is_given_ = true;
  return {.has_frame = true, .bytes = *bytes};
}

FrameReader::Next FrameReader::next() {
  if (is_given_) {
    is_given_ = false;
    if (kept_.capacity() > kKeptCapacityMax) {
      kept_ = std::string();
    } else {
      kept_.clear();
    }
  }
  if (!kept_.empty()) return next_of_kept();
  if (input_.size() < kFrameHeaderBytes) {
    keep_up_to(kFrameHeaderBytes);
    return {};
  }
  const std::size_t size = frame_size_from_header(input_);
  if (is_too_large(size)) return too_large(size);
  if (size > input_.size()) {
    keep_up_to(size);
    return {};
  }
  const auto bytes = read_frame(input_);
  if (!bytes) return failed(wrong_checksum());
  return {.has_frame = true, .bytes = *bytes};
}

}  // namespace pv2
