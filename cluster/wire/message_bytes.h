// SPDX-License-Identifier: Apache-2.0
//
// MessageBytes: cuts a message that has many items before it exceeds a frame. Items are measured,
// not counted: one that names a region has both keys of it, and keys may have 4 KiB each.
//
// How it fails: an item that exceeds the limit by itself goes alone. No item of the cluster's
// messages comes near the limit of a frame (4 MiB at the master, more elsewhere).

#pragma once

#include <pv2/base/fields.h>

#include <cstddef>
#include <string>

namespace pv2::cluster {

/// A quarter of the smallest frame.
inline constexpr std::size_t kBatchBytesMax = std::size_t{1} << 20;

/// A plain value.
class MessageBytes {
 public:
  /// Counts one more item. False: the message is full, and the item belongs into the next one.
  template <class T>
  [[nodiscard]] bool add(T item) {
    std::string encoded;
    encode_fields(item, FieldSelection::kAll, encoded);
    // The number and the length of the field that it will be.
    const std::size_t more = encoded.size() + 8;
    if (bytes_ != 0 && bytes_ + more > kBatchBytesMax) return false;
    bytes_ += more;
    return true;
  }

 private:
  std::size_t bytes_ = 0;
};

}  // namespace pv2::cluster
