// SPDX-License-Identifier: Apache-2.0
//
// The bytes of one unit in the step log: a header, then the encoded batches, under one checksum.
//
//     4 bytes  "PV2U"
//     4 bytes  CRC-32C of everything that follows, to the end of the frame
//     4 bytes  length of the payload
//     4 bytes  number of batches
//     8 bytes  number of the segment
//     8 bytes  commit sequence of the first batch
//     payload: per batch 4 bytes length, then RowBatch::encoded()
//
// Numbers are little-endian. The batches have consecutive sequences. A unit is written when the one
// before it has been synced: so a frame that begins with sequence n proves that all commits before
// n were durable. The segment's number tells it from what an earlier use of the file has left.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "pv2/store/commit_request.h"

namespace pv2 {

/// Numbers the segments of a store in the order of their use; a file takes the next number each
/// time that it is used again.
struct SegmentNumber {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(SegmentNumber, SegmentNumber) noexcept = default;
};

/// A frame that was read: its checksum is right. The views are valid as long as what was read.
struct UnitFrame {
  static constexpr std::size_t kHeaderBytes = 32;

  SegmentNumber segment;
  CommitSequence first;
  std::uint32_t batches = 0;
  std::string_view payload;

  [[nodiscard]] std::size_t bytes() const noexcept { return kHeaderBytes + payload.size(); }
  /// The sequence of its last batch.
  [[nodiscard]] CommitSequence last() const noexcept { return {first.value + batches - 1}; }

  /// Calls visit(CommitSequence, encoded batch) for each batch, until one returns false. Returns
  /// false then, and if the payload is not made of as many batches as the header says.
  template <class Visitor>
  [[nodiscard]] bool for_each_batch(Visitor&& visit) const {
    std::string_view rest = payload;
    for (std::uint32_t i = 0; i < batches; ++i) {
      const auto batch = take_batch(rest);
      if (!batch || !visit(CommitSequence{first.value + i}, *batch)) return false;
    }
    return rest.empty();
  }

 private:
  static std::optional<std::string_view> take_batch(std::string_view& rest) noexcept;
};

/// How long the frame of `unit` is.
[[nodiscard]] std::size_t frame_bytes(const CommitList& unit) noexcept;

/// Writes the frame of `unit`, which is not empty, to the frame_bytes() bytes at `to`.
void write_frame(char* to, const CommitList& unit, SegmentNumber segment) noexcept;

/// The frame that begins at `offset` of `bytes`; nullopt: there is no whole one.
[[nodiscard]] std::optional<UnitFrame> read_frame(std::string_view bytes,
                                                  std::size_t offset) noexcept;

/// How far apart the segments of a log may be: far more than there can be files.
inline constexpr std::uint64_t kSegmentsApart = std::uint64_t{1} << 20;

/// Looks behind a place where the log ends, for what should not be there if this is its end: a
/// frame at or behind `offset`, wherever it begins, of segment `oldest` or one of the next
/// kSegmentsApart, that begins behind `end`. nullopt: there is none. The value of a row may look
/// like a frame; but its writer does not know the numbers of the segments, of which the first is
/// random.
[[nodiscard]] std::optional<UnitFrame> find_later_frame(std::string_view bytes, std::size_t offset,
                                                        SegmentNumber oldest,
                                                        CommitSequence end) noexcept;

}  // namespace pv2
