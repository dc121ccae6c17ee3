// SPDX-License-Identifier: Apache-2.0
//
// What a small file of a cluster is: one frame (pv2/base/frame.h) with the fields of one value.
// Such a file is replaced as a whole, so it is complete, or damaged.

#pragma once

#include <pv2/base/fields.h>
#include <pv2/base/frame.h>
#include <pv2/base/status.h>

#include <optional>
#include <string>
#include <string_view>

namespace pv2::cluster {

/// The bytes of a file with this value. `T` has fields(); a copy, as those may be written too.
template <class T>
[[nodiscard]] std::string encode_framed(T value) {
  std::string bytes;
  FrameWriter frame(bytes);
  encode_fields(value, FieldSelection::kAll, bytes);
  frame.finish();
  return bytes;
}

/// The inverse of encode_framed(). kCorruption says why these are not the bytes of such a file;
/// then `value` is of no use.
template <class T>
[[nodiscard]] Status decode_framed(std::string_view bytes, T& value) {
  const std::optional<std::string_view> frame = read_frame(bytes);
  if (!frame) return {StatusCode::kCorruption, "its checksum does not match"};
  if (!bytes.empty()) return {StatusCode::kCorruption, "there is more in it than one value"};
  const Status bad = decode_fields(value, FieldSelection::kAll, *frame);
  return bad.ok() ? bad : Status(StatusCode::kCorruption, std::string(bad.message()));
}

}  // namespace pv2::cluster
