// SPDX-License-Identifier: Apache-2.0
//
// StoredDescriptor: the descriptor of a table with the past that its store files have to know. A
// family that was removed and added again is a new one, whether or not a region was opened in
// between: cells that were written before it came do not count.
//
//     version      1        2        3            b has been there since version 3: a file that
//     families     a b      a        a b          was written under version 1 shows only a
//     since        1 1      1        1 3
//
// Invariant: a family keeps its `since` from version to version, until it is removed.

#pragma once

#include <pv2/procedures/table.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pv2::cluster {

/// A plain value.
struct StoredDescriptor {
  TableDescriptor descriptor{};
  /// Of each family: the version of the descriptor that it came with. 0: the descriptor before that
  /// was damaged, so nobody knows, and every cell of the family counts.
  std::vector<std::uint64_t> since{};
  std::uint64_t version = 0;  ///< Of the descriptor. In the name of its file.

  void fields(auto& f) {
    f(1, "descriptor", descriptor);
    f(2, "since", since);
  }
};

/// What comes after `before` if the table gets `descriptor`. Without `before`: the first one
/// (`is_first`), or one whose predecessors are all damaged.
[[nodiscard]] StoredDescriptor next_descriptor(const std::optional<StoredDescriptor>& before,
                                               TableDescriptor descriptor, std::uint64_t version,
                                               bool is_first);

/// As a file has it.
[[nodiscard]] std::string encode_descriptor(const StoredDescriptor& stored);
/// nullopt: damaged.
[[nodiscard]] std::optional<StoredDescriptor> decode_descriptor(std::string_view bytes,
                                                                std::uint64_t version);

}  // namespace pv2::cluster
