// SPDX-License-Identifier: Apache-2.0
//
// RowChunk: a copy of some rows of a store, in order, in one piece of memory. A store shows a row
// only during a visit, and the thread that reads the chunk may be another one.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/store/procedure_store.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace pv2 {

/// Owned by one thread at a time.
class RowChunk {
 public:
  explicit RowChunk(std::size_t bytes) { bytes_.reserve(bytes); }

  void add(const StoredRow& row) {
    PV2_ASSERT(row.key.size() <= UINT32_MAX && row.value.size() <= UINT32_MAX,
               "a row is smaller than 4 GiB");
    const Frame frame{row.sequence.value, static_cast<std::uint32_t>(row.key.size()),
                      static_cast<std::uint32_t>(row.value.size()), row.space};
    bytes_.append(reinterpret_cast<const char*>(&frame), sizeof frame);
    bytes_.append(row.key).append(row.value);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.size(); }

  /// Ends with the first failure.
  template <class Visitor>
  Status for_each(Visitor&& visit) const {
    for (std::string_view left = bytes_; !left.empty();) {
      PV2_ASSERT(left.size() >= sizeof(Frame), "rows of a chunk are whole");
      Frame frame;
      std::memcpy(&frame, left.data(), sizeof frame);
      left.remove_prefix(sizeof frame);
      PV2_ASSERT(left.size() >= std::size_t{frame.key} + frame.value, "rows of a chunk are whole");
      const std::string_view key = left.substr(0, frame.key);
      const std::string_view value = left.substr(frame.key, frame.value);
      left.remove_prefix(key.size() + value.size());
      Status status = visit(StoredRow{frame.space, key, value, CommitSequence{frame.sequence}});
      if (!status.ok()) return status;
    }
    return Status();
  }

 private:
  struct Frame {
    std::uint64_t sequence = 0;
    std::uint32_t key = 0;  // how many bytes
    std::uint32_t value = 0;
    Space space = Space::kEngine;
  };
  std::string bytes_;
};

}  // namespace pv2
