// SPDX-License-Identifier: Apache-2.0
//
// SegmentMemory: memory for the bytes of segments. It keeps the last block that came back, for the
// next segment of that size. New memory of 16 MiB would come from the system, which clears it page
// by page while the log is written.

#pragma once

#include <cstddef>
#include <memory>

#include "pv2/base/mutex.h"

namespace pv2 {

/// Thread-safe. Blocks begin at multiples of SegmentFile::kBlockBytes, and may outlive it. With the
/// sanitizer of addresses it keeps none, so that the sanitizer sees who still reads a segment that
/// is gone.
class SegmentMemory {
 private:
  struct Kept;
  struct Free {
    void operator()(char* bytes) const noexcept;
  };
  using Bytes = std::unique_ptr<char[], Free>;

 public:
  /// Gives a block back, on whatever thread its last reader is. Without `to` it frees the block.
  struct GiveBack {
    std::shared_ptr<Kept> to{};
    std::size_t size = 0;
    void operator()(char* bytes) const noexcept;
  };
  using Block = std::unique_ptr<char[], GiveBack>;

  SegmentMemory();
  /// A block of `size` bytes, whose content is undefined.
  [[nodiscard]] Block take(std::size_t size);
  /// The same, but it is not kept.
  [[nodiscard]] static Block take_once(std::size_t size);

 private:
  static Bytes allocate(std::size_t size);

  std::shared_ptr<Kept> kept_;
};

}  // namespace pv2
