// SPDX-License-Identifier: Apache-2.0
//
// FileTree: durable operations on files and directories, over a leveldb::Env and a function that
// syncs a directory. It knows no name: cluster_layout.h makes the paths.
//
// Invariant: when a verb that changes something returns OK, the change survives a power cut. When
// it fails, or the power goes out meanwhile, the change is there completely or not at all, except
// for a verb about many files or a tree, which may leave a part; every verb may be repeated.

#pragma once

#include <leveldb/env.h>
#include <pv2/base/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace pv2::cluster {

/// LevelDB's failure as ours; a full disk becomes kStorageFull.
Status translate_leveldb(const leveldb::Status& status, std::string_view act);

/// fsync of a directory: what makes the names in it durable.
Status sync_real_directory(const std::string& directory);
/// Makes everything durable on a file system. Fails if anything could not be made durable that was
/// written since this function was made: also if the system has tried that by itself meanwhile, and
/// somebody else was told of the failure.
using EverythingSync = std::function<Status()>;
/// syncfs, on the file system of `directory`, which stays open as long as the function.
Result<EverythingSync> sync_of_real_file_system(const std::string& directory);

/// A file to be written.
struct NewFile {
  std::string path;
  std::string bytes;
};

/// A file to be renamed.
struct Renaming {
  std::string from;
  std::string to;
};

/// Thread-safe as its Env. A missing file is kNotFound.
class FileTree {
 public:
  using DirectorySync = std::function<Status(const std::string& directory)>;
  using FileSystemSync = std::function<Result<EverythingSync>(const std::string& directory)>;

  /// `owner` is part of the names of drafts: two processes that write one path at the same time
  /// must not share a draft. `env` outlives the object.
  /// `sync_all`, if there is one, returns a function that makes everything durable on the file
  /// system of a directory: for write_all(), rename_all() and sync_directories().
  FileTree(leveldb::Env& env, DirectorySync sync, std::string owner = "0",
           FileSystemSync sync_all = {})
      : env_(env),
        sync_(std::move(sync)),
        owner_(std::move(owner)),
        sync_all_(std::move(sync_all)) {}
  /// The machine's files.
  static FileTree real(std::string owner) {
    return {*leveldb::Env::Default(), sync_real_directory, std::move(owner),
            sync_of_real_file_system};
  }

  /// Replaces the file by `bytes`. The directory exists.
  Status write(const std::string& path, std::string_view bytes) const;
  /// Writes many files, each in a directory that is made if it is missing, with two syncs for all
  /// of them. A crash or a failure leaves some of the files, each completely.
  Status write_all(const std::vector<NewFile>& files) const;
  [[nodiscard]] Result<std::string> read(const std::string& path) const;
  /// `length` bytes from `offset` on; fewer when the file ends before.
  [[nodiscard]] Result<std::string> read_part(const std::string& path, std::uint64_t offset,
                                              std::size_t length) const;
  [[nodiscard]] Result<std::uint64_t> size(const std::string& path) const;
  /// Whether the file or directory is there; a failure if that cannot be told.
  [[nodiscard]] Result<bool> is_there(const std::string& path) const;
  /// False also if it cannot be told: only where that errs on the safe side.
  [[nodiscard]] bool exists(const std::string& path) const { return env_.FileExists(path); }
  /// The names in a directory, sorted, without drafts; none when the directory is absent, or is a
  /// file.
  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& directory) const;
  [[nodiscard]] Result<std::vector<std::string>> list_with_drafts(
      const std::string& directory) const;
  /// Whether a name is that of a file that was not finished.
  [[nodiscard]] static bool is_draft(std::string_view name) noexcept {
    return name.find('~') != std::string_view::npos;
  }

  /// Makes the directory, in one that is there. kNotFound: it is not. One that exists is OK.
  Status make_directory(const std::string& directory) const;
  /// Makes the directory and those above it.
  Status make_directories(const std::string& directory) const;
  /// Renames a file or a directory. A file replaces the file of that name. kNotFound: `from` is
  /// not there.
  Status rename(const std::string& from, const std::string& to) const;
  /// Renames many files, each into a directory that is made if it is missing, in one that is there,
  /// with two syncs for all of them. A crash or a failure leaves some of them renamed.
  Status rename_all(const std::vector<Renaming>& files) const;
  /// Removes a file; an absent one is OK. Durable with the next sync of its directory.
  Status remove_file(const std::string& path) const;
  /// Removes a directory that has nothing in it but drafts. One that has more stays, which is OK.
  Status remove_directory(const std::string& path) const;
  /// Removes a file or a directory with everything in it; an absent one is OK.
  Status remove_tree(const std::string& path) const { return remove_trees({path}); }
  /// The same for many, with one sync for each directory that has some of them.
  Status remove_trees(const std::vector<std::string>& paths) const;

  Status sync_directory(const std::string& directory) const { return sync_(directory); }
  /// As sync_directory_if_there() for each, with one sync for all of them if there is sync_all.
  Status sync_directories(const std::vector<std::string>& directories) const;
  /// One that is not there any more, or is a file: OK.
  Status sync_directory_if_there(const std::string& directory) const;
  [[nodiscard]] leveldb::Env& env() const noexcept { return env_; }

 private:
  Status write_draft(const NewFile& file, bool is_synced) const;
  Status write_one_by_one(const std::vector<NewFile>& files) const;
  Status rename_one_by_one(const std::vector<Renaming>& files) const;
  Status rename_durably(const std::vector<Renaming>& files, const EverythingSync& sync) const;
  Status create_directory(const std::string& directory) const;
  Status remove_recursively(const std::string& path) const;

  leveldb::Env& env_;
  DirectorySync sync_;
  std::string owner_;
  FileSystemSync sync_all_;
};

/// The directory that holds `path` ("." for a bare name).
[[nodiscard]] std::string parent_directory(const std::string& path);
/// The last part of `path`.
[[nodiscard]] std::string file_name(const std::string& path);

}  // namespace pv2::cluster
