// SPDX-License-Identifier: Apache-2.0
//
// LocalState: what the master keeps outside the catalogue, in a file of its own, because it needs
// it to bring the catalogue's region online: its epoch, the row of that region, and the rows of
// dead servers.
//
// Invariant: what contents() says is durable. The file is replaced as a whole.

#pragma once

#include <pv2/base/status.h>
#include <pv2/procedures/catalogue_state.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/file_tree.h"

namespace pv2::cluster {

struct LocalContents {
  std::uint64_t epoch = 0;
  std::vector<CatalogueState::Kept<ServerRow>> servers;
  std::optional<CatalogueState::Kept<RegionRow>> meta;

  void fields(auto& f) {
    f(1, "epoch", epoch);
    f(2, "servers", servers);
    f(3, "meta", meta);
  }
};

/// Owned by one thread. `files` outlives it.
class LocalState {
 public:
  /// Reads the file; an absent one is an empty state. kCorruption: it cannot be read; a master that
  /// went on without it could forget that a server is dead.
  [[nodiscard]] static Result<LocalState> open(const FileTree& files, std::string path);

  [[nodiscard]] const LocalContents& contents() const noexcept { return contents_; }
  /// Makes `contents` durable.
  Status replace(LocalContents contents);

 private:
  LocalState(const FileTree& files, std::string path) : files_(&files), path_(std::move(path)) {}

  const FileTree* files_;
  std::string path_;
  LocalContents contents_;
};

}  // namespace pv2::cluster
