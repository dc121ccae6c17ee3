// SPDX-License-Identifier: Apache-2.0
//
// A descriptor of before, which cannot tell the age of its families, counts as damaged: there has
// been no release with one.

#include "storage/stored_descriptor.h"

#include <algorithm>
#include <utility>

#include "storage/framed_fields.h"

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

std::string encode_descriptor(const StoredDescriptor& stored) { return encode_framed(stored); }

std::optional<StoredDescriptor> decode_descriptor(std::string_view bytes, std::uint64_t version) {
  StoredDescriptor stored{.version = version};
  if (!decode_framed(bytes, stored).ok()) return std::nullopt;
  if (stored.since.size() != stored.descriptor.families.size()) return std::nullopt;
  return stored;
}

}  // namespace pv2::cluster
