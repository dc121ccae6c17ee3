// SPDX-License-Identifier: Apache-2.0
//
// One frame (pv2/base/frame.h) per file. A descriptor of before, which cannot tell the age of its
// families, counts as damaged: there has been no release with one.

#include "storage/stored_descriptor.h"

#include <pv2/base/fields.h>
#include <pv2/base/frame.h>

#include <algorithm>
#include <utility>

namespace pv2::cluster {

StoredDescriptor next_descriptor(const std::optional<StoredDescriptor>& before,
                                 TableDescriptor descriptor, std::uint64_t version, bool is_first) {
  StoredDescriptor next{.descriptor = std::move(descriptor), .version = version};
  for (const std::string& family : next.descriptor.families) {
    std::uint64_t since = before || is_first ? version : 0;
    if (before) {
      const std::vector<std::string>& old = before->descriptor.families;
      const auto found = std::ranges::find(old, family);
      if (found != old.end()) since = before->since[static_cast<std::size_t>(found - old.begin())];
    }
    next.since.push_back(since);
  }
  return next;
}

std::string encode_descriptor(StoredDescriptor stored) {
  std::string bytes;
  FrameWriter frame(bytes);
  encode_fields(stored, FieldSelection::kAll, bytes);
  frame.finish();
  return bytes;
}

std::optional<StoredDescriptor> decode_descriptor(std::string_view bytes, std::uint64_t version) {
  const std::optional<std::string_view> frame = read_frame(bytes);
  StoredDescriptor stored{.version = version};
  if (!frame || !decode_fields(stored, FieldSelection::kAll, *frame).ok()) return std::nullopt;
  if (stored.since.size() != stored.descriptor.families.size()) return std::nullopt;
  return stored;
}

}  // namespace pv2::cluster
