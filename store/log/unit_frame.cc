// SPDX-License-Identifier: Apache-2.0
//
// Frames are written in place, into the memory from which they go to the disk.

#include "log/unit_frame.h"

#include <cstring>

#include "little_endian.h"
#include "pv2/base/assert.h"
#include "pv2/base/crc32c.h"

namespace pv2 {
namespace {

constexpr std::string_view kMagic = "PV2U";
constexpr std::size_t kChecksumAt = 4;
constexpr std::size_t kCheckedFrom = 8;
constexpr std::size_t kBatchLengthBytes = 4;

template <class Number>
char* write_number(char* to, Number number) noexcept {
  for (std::size_t i = 0; i < sizeof number; ++i) to[i] = static_cast<char>(number >> (8 * i));
  return to + sizeof number;
}

// The frame as the header at the beginning of `bytes` tells it; nullopt: it is no header, or its
// payload is not there in full. The checksum is not looked at.
std::optional<UnitFrame> read_header(std::string_view bytes) noexcept {
  if (bytes.size() < UnitFrame::kHeaderBytes || !bytes.starts_with(kMagic)) return std::nullopt;
  const char* const header = bytes.data();
  const std::size_t payload = read_fixed32(header + 8);
  if (bytes.size() - UnitFrame::kHeaderBytes < payload) return std::nullopt;
  UnitFrame frame;
  frame.batches = read_fixed32(header + 12);
  frame.segment.value = read_fixed64(header + 16);
  frame.first.value = read_fixed64(header + 24);
  frame.payload = bytes.substr(UnitFrame::kHeaderBytes, payload);
  return frame;
}

}  // namespace

std::size_t frame_bytes(const CommitList& unit) noexcept {
  return UnitFrame::kHeaderBytes + unit.size() * kBatchLengthBytes + unit.bytes();
}

void write_frame(char* to, const CommitList& unit, SegmentNumber segment) noexcept {
  const std::size_t payload = frame_bytes(unit) - UnitFrame::kHeaderBytes;
  PV2_ASSERT(!unit.empty() && payload <= UINT32_MAX && unit.size() <= UINT32_MAX,
             "a unit has batches, of less than 4 GiB together");
  std::memcpy(to, kMagic.data(), kMagic.size());
  char* at = write_number(to + kCheckedFrom, static_cast<std::uint32_t>(payload));
  at = write_number(at, static_cast<std::uint32_t>(unit.size()));
  at = write_number(at, segment.value);
  at = write_number(at, unit.front()->sequence.value);
  unit.for_each([&at](const CommitRequest& request) {
    const std::string_view batch = request.batch.encoded();
    at = write_number(at, static_cast<std::uint32_t>(batch.size()));
    if (!batch.empty()) std::memcpy(at, batch.data(), batch.size());
    at += batch.size();
  });
  const std::string_view checked(to + kCheckedFrom,
                                 static_cast<std::size_t>(at - to) - kCheckedFrom);
  write_number(to + kChecksumAt, crc32c(checked));
}

std::optional<UnitFrame> read_frame(std::string_view bytes, std::size_t offset) noexcept {
  if (offset > bytes.size()) return std::nullopt;
  bytes.remove_prefix(offset);
  const auto frame = read_header(bytes);
  const std::string_view checked = bytes.substr(0, frame ? frame->bytes() : 0);
  const bool whole =
      frame && crc32c(checked.substr(kCheckedFrom)) == read_fixed32(checked.data() + kChecksumAt);
  return whole ? frame : std::nullopt;
}

std::optional<UnitFrame> find_later_frame(std::string_view bytes, std::size_t offset,
                                          SegmentNumber oldest, CommitSequence end) noexcept {
  for (;;) {
    offset = bytes.find(kMagic, offset);
    if (offset == std::string_view::npos) return std::nullopt;
    // Whose number is wrong is not read: a checksum over each place that looks like a frame would
    // take a time that is quadratic in the bytes.
    const auto said = read_header(bytes.substr(offset));
    const bool of_log =
        said && said->segment >= oldest && said->segment.value - oldest.value < kSegmentsApart;
    const auto frame = of_log ? read_frame(bytes, offset) : std::nullopt;
    if (frame && frame->first > end) return frame;
    offset += frame ? frame->bytes() : 1;
  }
}

std::optional<std::string_view> UnitFrame::take_batch(std::string_view& rest) noexcept {
  if (rest.size() < kBatchLengthBytes) return std::nullopt;
  const std::size_t size = read_fixed32(rest.data());
  if (rest.size() - kBatchLengthBytes < size) return std::nullopt;
  const std::string_view batch = rest.substr(kBatchLengthBytes, size);
  rest.remove_prefix(kBatchLengthBytes + size);
  return batch;
}

}  // namespace pv2
