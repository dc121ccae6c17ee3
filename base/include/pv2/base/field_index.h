// SPDX-License-Identifier: Apache-2.0
//
// FieldIndex: where each field of one encoded message lies. fields() asks in the order of its
// declaration, while the bytes may hold the fields in any order. One pass records every field, and
// each lookup is then answered without reading the bytes again. It checks the wire format and knows
// nothing about types.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "pv2/base/status.h"
#include "pv2/base/wire.h"

namespace pv2::internal {

/// One occurrence of a field.
struct FieldEntry {
  std::uint32_t number;
  WireType type;
  bool is_empty;      ///< A mark: the list, map or optional of this number is empty.
  std::uint64_t raw;  ///< A number as written; for bytes, their length.
  const char* data;   ///< Bytes only.

  [[nodiscard]] std::string_view bytes() const noexcept { return {data, raw}; }
};

/// Owned by one thread. The input must outlive it.
class FieldIndex {
 public:
  explicit FieldIndex(std::string_view input);
  FieldIndex(const FieldIndex&) = delete;
  FieldIndex& operator=(const FieldIndex&) = delete;

  /// kCorruption when the input is malformed; then the index is empty.
  [[nodiscard]] const Status& status() const noexcept { return status_; }

  /// Calls take(entry) for each occurrence of `number`, in the order of the bytes.
  template <class Take>
  void for_each(std::uint32_t number, Take&& take) {
    if (!ordered_) {
      for (std::size_t i = 0; i < size_; ++i) {
        if (entries_[i].number == number) take(entries_[i]);
      }
      return;
    }
    // The fields are in ascending order, as an encoder writes them, and the class most likely asks
    // in the same order.
    std::size_t i = next_;
    if (i == size_ || entries_[i].number != number) i = first_of(number);
    for (; i < size_ && entries_[i].number == number; ++i) take(entries_[i]);
    next_ = i;
  }

 private:
  // Most messages have no more fields than this, and then nothing is allocated.
  static constexpr std::size_t kInline = 16;

  void add(const FieldEntry& entry);
  void add_empty(WireReader& reader);
  [[nodiscard]] std::size_t first_of(std::uint32_t number) const noexcept;

  FieldEntry inline_[kInline];  // NOLINT: filled before it is read
  std::vector<FieldEntry> more_;
  const FieldEntry* entries_ = inline_;
  std::size_t size_ = 0;
  std::size_t next_ = 0;  // where the previous lookup ended
  bool ordered_ = true;   // no number is lower than the one before
  Status status_;
};

}  // namespace pv2::internal
