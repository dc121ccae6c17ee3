// SPDX-License-Identifier: Apache-2.0
//
// Frames: the checksum is computed last, over the length and the bytes together.

#include "pv2/base/frame.h"

#include <cstdint>
#include <cstring>
#include <limits>

#include "pv2/base/assert.h"
#include "pv2/base/crc32c.h"

namespace pv2 {
namespace {

constexpr std::size_t kWord = sizeof(std::uint32_t);
static_assert(kFrameHeaderBytes == 2 * kWord);

std::uint32_t load_word(const char* at) noexcept {
  std::uint32_t word = 0;
  std::memcpy(&word, at, kWord);
  return word;
}

void store_word(char* at, std::uint32_t word) noexcept { std::memcpy(at, &word, kWord); }

}  // namespace

void append_frame(std::string& out, std::string_view bytes) {
  FrameWriter frame(out);
  out.append(bytes);
  frame.finish();
}

void seal_frame(char* frame, std::size_t size) noexcept {
  PV2_ASSERT(size <= std::numeric_limits<std::uint32_t>::max(), "a frame holds less than 4 GiB");
  store_word(frame + kWord, static_cast<std::uint32_t>(size));
  store_word(frame, crc32c({frame + kWord, kWord + size}));
}

std::size_t frame_size_from_header(std::string_view header) noexcept {
  PV2_ASSERT(header.size() >= kFrameHeaderBytes, "a frame's header is there before it is read");
  return kFrameHeaderBytes + load_word(header.data() + kWord);
}

std::optional<std::string_view> read_frame(std::string_view& input) noexcept {
  if (input.size() < kFrameHeaderBytes) return std::nullopt;
  const std::size_t size = load_word(input.data() + kWord);
  if (size > input.size() - kFrameHeaderBytes) return std::nullopt;
  if (crc32c(input.substr(kWord, kWord + size)) != load_word(input.data())) return std::nullopt;
  const std::string_view bytes = input.substr(kFrameHeaderBytes, size);
  input.remove_prefix(kFrameHeaderBytes + size);
  return bytes;
}

std::optional<std::size_t> size_of_frame(std::string_view input) noexcept {
  if (input.size() < kFrameHeaderBytes) return std::nullopt;
  const std::size_t size = load_word(input.data() + kWord);
  if (size > input.size() - kFrameHeaderBytes) return std::nullopt;
  return kFrameHeaderBytes + size;
}

FrameWriter::FrameWriter(std::string& out) : out_(out), start_(out.size()) {
  out_.append(kFrameHeaderBytes, '\0');
}

FrameWriter::~FrameWriter() {
  if (!finished_) out_.resize(start_);
}

void FrameWriter::finish() {
  PV2_ASSERT(!finished_, "a frame is finished once");
  PV2_ASSERT(out_.size() >= start_ + kFrameHeaderBytes, "nothing cuts into a frame being built");
  const std::size_t size = out_.size() - start_ - kFrameHeaderBytes;
  seal_frame(out_.data() + start_, size);
  finished_ = true;
}

}  // namespace pv2
