// SPDX-License-Identifier: Apache-2.0
//
// LocalState: what the master keeps outside the catalogue, in a file of its own, because it needs
// it to bring the catalogue's region online: its epoch, the row of that region, and the rows of
// dead servers. The file has the epoch in its name, `state.<epoch>`, and that of the highest epoch
// counts: what a master writes that has a successor already, is read by nobody. Before pv2 wrote
// the epoch there, the file was `state`; it counts if there is no other one.
//
// Invariant: what contents() says is durable. The file is replaced as a whole.
//
// How it fails: replace() is refused (kFenced) once there is a file of a higher epoch. A write that
// was under way when the successor read the file may be missing there. A process has the lock of
// the directory (master_lock.h), so this is for the case that the lock was lost.

#pragma once

#include <pv2/base/status.h>
#include <pv2/procedures/catalogue_state.h>

#include <cstdint>
#include <optional>
#include <set>
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
  /// Reads the file with the highest epoch below that name; if there is none, the state is empty.
  /// `path` has a directory. kCorruption: it cannot be read; a master that went on without it could
  /// forget that a server is dead.
  [[nodiscard]] static Result<LocalState> open(const FileTree& files, std::string path);

  [[nodiscard]] const LocalContents& contents() const noexcept { return contents_; }
  /// Makes `contents` durable, in the file of its epoch. kFenced: a later master has begun.
  Status replace(LocalContents contents);
  /// Removes the files of earlier epochs. What cannot be removed is left to the next master.
  void remove_earlier() const;

 private:
  LocalState(const FileTree& files, std::string path) : files_(&files), path_(std::move(path)) {}
  /// The epochs of which there is a file.
  [[nodiscard]] Result<std::set<std::uint64_t>> epochs() const;
  [[nodiscard]] std::string file_of(std::uint64_t epoch) const {
    return path_ + "." + std::to_string(epoch);
  }

  const FileTree* files_;
  std::string path_;
  LocalContents contents_;
};

}  // namespace pv2::cluster
