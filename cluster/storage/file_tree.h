// SPDX-License-Identifier: Apache-2.0
//
// FileTree: durable operations on files and directories, over a leveldb::Env and a function that
// syncs a directory. It knows no name: cluster_layout.h makes the paths.
//
// Invariants:
// - When a verb that changes something returns OK, the change survives a power cut. When it fails,
//   or the power goes out meanwhile, the change is there completely or not at all, except for a
//   verb about many files or a tree, which may leave a part; every verb may be repeated.
// - What cannot be seen is not absent. A tree on a file system that is not mounted here for a
//   moment looks as if everything was removed. So a path counts as absent only if it is not there,
//   the tree's witness is seen after that, and the path is not there when it is asked for once
//   more. That takes two calls more. Without the witness the answer is kUnavailable. So it is with
//   another witness than the one seen first: somebody has once made one below the mount point, or
//   another tree is mounted there. Only a tree that vanishes twice within one verb deceives it.

#pragma once

#include <leveldb/env.h>
#include <pv2/base/mutex.h>
#include <pv2/base/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pv2::cluster {

/// LevelDB's failure as ours; a full disk becomes kStorageFull.
Status translate_leveldb(const leveldb::Status& status, std::string_view act);

/// fsync of a directory: what makes the names in it durable. kNotFound: it is absent, or is a file.
Status sync_real_directory(const std::string& directory);
/// Makes everything durable on a file system. Fails if anything could not be made durable that was
/// written since this function was made: also if the system has tried that by itself meanwhile, and
/// somebody else was told of the failure.
using EverythingSync = std::function<Status()>;
/// syncfs, on the file system of `directory`, which stays open as long as the function. kNotFound:
/// it is absent, or is a file.
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

/// A file that shows that a tree can be seen: it is made first, and nobody changes or removes it.
/// Each tree has a witness of its own content.
struct TreeWitness {
  std::string root;  ///< The directory of the tree.
  std::string file;  ///< Below it.
};

/// Thread-safe as its Env. A missing file is kNotFound. kUnavailable: the file is below the root of
/// the witness, and neither of them can be seen.
class FileTree {
 public:
  using DirectorySync = std::function<Status(const std::string& directory)>;
  /// Makes an EverythingSync of the file system that the directory is on.
  using OpenSync = std::function<Result<EverythingSync>(const std::string& directory)>;

  /// `owner` is part of the names of drafts: two processes that write one path at the same time
  /// must not share a draft. `env` outlives the object.
  /// `open_sync`, if there is one, lets write_all(), rename_all() and sync_directories() make many
  /// changes durable at once.
  /// `witness` is of one tree. Elsewhere, and without one, a path is absent that is not there once:
  /// for readers who lose nothing by that.
  FileTree(leveldb::Env& env, DirectorySync sync, std::string owner = "0", OpenSync open_sync = {},
           std::optional<TreeWitness> witness = {})
      : env_(env),
        sync_(std::move(sync)),
        owner_(std::move(owner)),
        open_sync_(std::move(open_sync)),
        witness_(std::move(witness)),
        first_seen_(std::make_shared<FirstSeen>()) {}
  /// The machine's files.
  static FileTree real(std::string owner, std::optional<TreeWitness> witness = {}) {
    return {*leveldb::Env::Default(), sync_real_directory, std::move(owner),
            sync_of_real_file_system, std::move(witness)};
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
  /// Whether the file or directory is there; a failure if that cannot be told. Nothing confirms
  /// that the witness itself is absent: who makes it looks at something else. A process asks for it
  /// when it begins, and knows it from then on.
  [[nodiscard]] Result<bool> is_there(const std::string& path) const;
  /// False also if it cannot be told, or the tree cannot be seen: only where that errs on the safe
  /// side.
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

  /// Makes the directory durably, in one that is there. kNotFound: it is not. One that exists is
  /// OK. None is made where the witness cannot be seen, which would be below a mount point.
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

  /// kNotFound: it is not there, or is a file.
  Status sync_directory(const std::string& directory) const;
  /// As sync_directory_if_there() for each, with one sync for all of them if there is an OpenSync.
  Status sync_directories(const std::vector<std::string>& directories) const;
  /// One that is not there any more, or is a file: OK.
  Status sync_directory_if_there(const std::string& directory) const;
  [[nodiscard]] leveldb::Env& env() const noexcept { return env_; }

 private:
  Status write_draft(const NewFile& file, bool is_synced) const;
  Status write_one_by_one(const std::vector<NewFile>& files) const;
  Status rename_one_by_one(const std::vector<Renaming>& files) const;
  Status rename_durably(const std::vector<Renaming>& files, const EverythingSync& sync) const;
  /// As make_directory(), but a crash may take it away again.
  Status create_directory(const std::string& directory) const;
  [[nodiscard]] Result<EverythingSync> open_confirmed_sync(const std::string& directory) const;
  Status rename_file(const std::string& from, const std::string& to) const;
  Status remove_recursively(const std::string& path) const;
  Status remove_empty_directory(const std::string& path) const;

  /// The content of the witness. Copies of a FileTree share it.
  struct FirstSeen {
    Mutex bytes_mutex;
    std::optional<std::string> bytes PV2_GUARDED_BY(bytes_mutex);
  };

  [[nodiscard]] bool is_watched(const std::string& path) const;
  [[nodiscard]] bool is_witness(const std::string& path) const;
  /// Whether the witness is there, and is that of before.
  [[nodiscard]] Status check_in_sight() const;
  /// OK: the first witness that was seen has the content `witness`, or this is the first one.
  [[nodiscard]] Status check_known(const std::string& witness) const;
  /// What `ask` answers about `path`. kNotFound is confirmed: see the invariant.
  [[nodiscard]] Status confirmed(const std::string& path, const std::function<Status()>& ask) const;

  leveldb::Env& env_;
  DirectorySync sync_;
  std::string owner_;
  OpenSync open_sync_;
  std::optional<TreeWitness> witness_;
  std::shared_ptr<FirstSeen> first_seen_;
};

/// The directory that holds `path` ("." for a bare name).
[[nodiscard]] std::string parent_directory(const std::string& path);
/// The last part of `path`.
[[nodiscard]] std::string file_name(const std::string& path);

}  // namespace pv2::cluster
