// SPDX-License-Identifier: Apache-2.0
//
// Files and directories through leveldb::Env. A draft has a '~' in its name, which no name of
// cluster_layout.h has. Every failure names the file.

#include "storage/file_tree.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <pv2/base/directory_names.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <system_error>

namespace pv2::cluster {
namespace {

std::vector<std::string> sorted_children(std::vector<std::string> names) {
  std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
  std::ranges::sort(names);
  return names;
}

// Nothing is at a path of which an earlier part is a file: somebody has put a note where a
// directory could be.
bool is_absent(const leveldb::Status& status) {
  return status.IsNotFound() || status.ToString().ends_with(": Not a directory");
}

// LevelDB's own Env takes what it has of a list that the system broke off for the whole list.
leveldb::Status children_of(leveldb::Env& env, const std::string& directory,
                            std::vector<std::string>& names) {
  if (&env != leveldb::Env::Default()) return env.GetChildren(directory, &names);
  Result<std::vector<std::string>> listed = names_in(directory);
  if (listed.ok()) {
    names = *std::move(listed);
    return {};
  }
  const std::string why(listed.status().message());
  return listed.status().code() == StatusCode::kNotFound ? leveldb::Status::NotFound(why)
                                                         : leveldb::Status::IOError(why);
}

}  // namespace

Status translate_leveldb(const leveldb::Status& status, std::string_view act) {
  if (status.ok()) return {};
  const std::string message = status.ToString();
  StatusCode code = StatusCode::kIoError;
  if (status.IsCorruption()) code = StatusCode::kCorruption;
  if (is_absent(status)) code = StatusCode::kNotFound;
  if (message.find("No space left on device") != std::string::npos ||
      message.find("Disk quota exceeded") != std::string::npos) {
    code = StatusCode::kStorageFull;
  }
  return {code, fmt::format("{} failed: {}", act, message)};
}

namespace {

// A directory that is open for its syncs. Immutable.
class OpenDirectory {
 public:
  explicit OpenDirectory(std::string path)
      : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ < 0) opened_ = failed("open");
  }
  ~OpenDirectory() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenDirectory(const OpenDirectory&) = delete;
  OpenDirectory& operator=(const OpenDirectory&) = delete;

  [[nodiscard]] const Status& opened() const { return opened_; }
  Status sync_with(int (*sync)(int)) const { return sync(fd_) == 0 ? Status() : failed("sync"); }

 private:
  [[nodiscard]] Status failed(const char* act) const {
    const bool is_absent = errno == ENOENT || errno == ENOTDIR;
    return {is_absent ? StatusCode::kNotFound : StatusCode::kIoError,
            fmt::format("cannot {} directory {}: {}", act, path_,
                        std::generic_category().message(errno))};
  }

  const std::string path_;
  const int fd_;
  Status opened_;
};

}  // namespace

Status sync_real_directory(const std::string& directory) {
  const OpenDirectory open(directory);
  return open.opened().ok() ? open.sync_with(::fsync) : open.opened();
}

Result<EverythingSync> sync_of_real_file_system(const std::string& directory) {
  // Linux tells a failure to write back to each descriptor that was open before it, and to no other
  // one that was opened after somebody was told.
  const auto open = std::make_shared<const OpenDirectory>(directory);
  if (!open->opened().ok()) return open->opened();
  return EverythingSync([open] { return open->sync_with(::syncfs); });
}

std::string parent_directory(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

bool FileTree::is_watched(const std::string& path) const {
  return witness_ && path.starts_with(witness_->root + "/");
}

bool FileTree::is_witness(const std::string& path) const {
  return witness_ && path == witness_->file;
}

Status FileTree::check_in_sight() const {
  std::string bytes;
  Status read = translate_leveldb(leveldb::ReadFileToString(&env_, witness_->file, &bytes),
                                  "reading " + witness_->file);
  if (read.ok()) return check_known(bytes);
  if (read.code() != StatusCode::kNotFound) return read;
  return {StatusCode::kUnavailable,
          witness_->file + " is not there: look whether " + witness_->root + " is mounted"};
}

Status FileTree::check_known(const std::string& witness) const {
  const MutexLock lock(first_seen_->bytes_mutex);
  std::optional<std::string>& known = first_seen_->bytes;
  if (!known) known = witness;
  if (known == witness) return {};
  return {StatusCode::kUnavailable,
          witness_->file + " is not that of before: look whether " + witness_->root +
              " is mounted, with the right cluster; if it is now, start this process again"};
}

Status FileTree::confirmed(const std::string& path, const std::function<Status()>& ask) const {
  Status first = ask();
  if (first.code() != StatusCode::kNotFound || !is_watched(path)) return first;
  if (Status bad = check_in_sight(); !bad.ok()) return bad;
  return ask();
}

Status FileTree::write_draft(const NewFile& file, bool is_synced) const {
  return confirmed(file.path, [&] {
    leveldb::WritableFile* opened = nullptr;
    leveldb::Status status = env_.NewWritableFile(file.path + "~" + owner_, &opened);
    const std::unique_ptr<leveldb::WritableFile> owned(opened);
    if (status.ok()) status = owned->Append(leveldb::Slice(file.bytes.data(), file.bytes.size()));
    if (status.ok() && is_synced) status = owned->Sync();
    if (status.ok()) status = owned->Close();
    return translate_leveldb(status, "writing " + file.path);
  });
}

Status FileTree::write(const std::string& path, std::string_view bytes) const {
  if (Status bad = write_draft({path, std::string(bytes)}, true); !bad.ok()) return bad;
  if (Status bad = rename_file(path + "~" + owner_, path); !bad.ok()) return bad;
  return sync_directory(parent_directory(path));
}

Status FileTree::write_one_by_one(const std::vector<NewFile>& files) const {
  for (const NewFile& file : files) {
    if (Status bad = make_directory(parent_directory(file.path)); !bad.ok()) return bad;
    if (Status bad = write(file.path, file.bytes); !bad.ok()) return bad;
  }
  return {};
}

Status FileTree::write_all(const std::vector<NewFile>& files) const {
  if (files.empty()) return {};
  if (!open_sync_) return write_one_by_one(files);
  const std::string anywhere = parent_directory(files.front().path);
  if (Status bad = create_directory(anywhere); !bad.ok()) return bad;
  // Made before the first draft, so that it is told of a failure to write any of them.
  const Result<EverythingSync> sync = open_confirmed_sync(anywhere);
  if (!sync.ok()) return sync.status();
  for (const NewFile& file : files) {
    if (Status bad = create_directory(parent_directory(file.path)); !bad.ok()) return bad;
    if (Status bad = write_draft(file, false); !bad.ok()) return bad;
  }
  std::vector<Renaming> drafts;
  drafts.reserve(files.size());
  for (const NewFile& file : files) drafts.push_back({file.path + "~" + owner_, file.path});
  return rename_durably(drafts, *sync);
}

Status FileTree::create_directory(const std::string& directory) const {
  if (exists(directory)) return {};
  // The directories above the witness are made before it.
  const bool is_above_witness = witness_ && witness_->file.starts_with(directory + "/");
  if (is_watched(directory) && !is_above_witness) {
    if (Status bad = check_in_sight(); !bad.ok()) return bad;
  }
  return confirmed(directory, [&] {
    const leveldb::Status status = env_.CreateDir(directory);
    // Somebody else may have made it meanwhile.
    if (status.ok() || exists(directory)) return Status();
    return translate_leveldb(status, "making directory " + directory);
  });
}

Result<EverythingSync> FileTree::open_confirmed_sync(const std::string& directory) const {
  EverythingSync sync;
  Status bad = confirmed(directory, [&] {
    Result<EverythingSync> opened = open_sync_(directory);
    if (!opened.ok()) return opened.status();
    sync = *std::move(opened);
    return Status();
  });
  if (!bad.ok()) return bad;
  return sync;
}

Result<std::string> FileTree::read(const std::string& path) const {
  std::string bytes;
  Status bad = confirmed(path, [&] {
    return translate_leveldb(leveldb::ReadFileToString(&env_, path, &bytes), "reading " + path);
  });
  if (bad.ok() && is_witness(path)) bad = check_known(bytes);
  if (!bad.ok()) return bad;
  return bytes;
}

Result<std::string> FileTree::read_part(const std::string& path, std::uint64_t offset,
                                        std::size_t length) const {
  std::string bytes;
  Status bad = confirmed(path, [&] {
    leveldb::SequentialFile* opened = nullptr;
    leveldb::Status status = env_.NewSequentialFile(path, &opened);
    const std::unique_ptr<leveldb::SequentialFile> owned(opened);
    if (status.ok() && offset > 0) status = owned->Skip(offset);
    while (status.ok() && bytes.size() < length) {
      std::string scratch(length - bytes.size(), '\0');
      leveldb::Slice part;
      status = owned->Read(scratch.size(), &part, scratch.data());
      if (part.empty()) break;
      bytes.append(part.data(), part.size());
    }
    return translate_leveldb(status, "reading " + path);
  });
  if (!bad.ok()) return bad;
  return bytes;
}

Result<std::uint64_t> FileTree::size(const std::string& path) const {
  std::uint64_t bytes = 0;
  Status bad = confirmed(path, [&] {
    return translate_leveldb(env_.GetFileSize(path, &bytes), "looking at " + path);
  });
  if (!bad.ok()) return bad;
  return bytes;
}

Result<bool> FileTree::is_there(const std::string& path) const {
  if (env_.FileExists(path)) {
    if (Status other = is_witness(path) ? check_in_sight() : Status(); !other.ok()) return other;
    return true;
  }
  const auto look = [&] {
    std::uint64_t bytes = 0;
    return translate_leveldb(env_.GetFileSize(path, &bytes), "looking for " + path);
  };
  Status looked = is_witness(path) ? look() : confirmed(path, look);
  if (looked.code() == StatusCode::kNotFound) return false;
  if (!looked.ok()) return looked;
  return true;
}

Status FileTree::sync_directory(const std::string& directory) const {
  return confirmed(directory, [&] { return sync_(directory); });
}

Status FileTree::sync_directory_if_there(const std::string& directory) const {
  const Result<bool> there = is_there(directory);
  if (!there.ok()) return there.status();
  const Status synced = *there ? sync_directory(directory) : Status();
  // A file is there, or it has gone meanwhile.
  return synced.code() == StatusCode::kNotFound ? Status() : synced;
}

Status FileTree::sync_directories(const std::vector<std::string>& directories) const {
  for (const std::string& directory : directories) {
    if (!open_sync_) {
      if (Status bad = sync_directory_if_there(directory); !bad.ok()) return bad;
      continue;
    }
    const Result<bool> there = is_there(directory);
    if (!there.ok()) return there.status();
    if (!*there) continue;
    const Result<EverythingSync> sync = open_confirmed_sync(directory);
    if (sync.status().code() == StatusCode::kNotFound) continue;  // gone meanwhile, or a file
    return sync.ok() ? (*sync)() : sync.status();
  }
  return {};
}

Result<std::vector<std::string>> FileTree::list(const std::string& directory) const {
  Result<std::vector<std::string>> names = list_with_drafts(directory);
  if (names.ok()) std::erase_if(*names, is_draft);
  return names;
}

Result<std::vector<std::string>> FileTree::list_with_drafts(const std::string& directory) const {
  std::vector<std::string> names;
  const Status listed = confirmed(directory, [&] {
    const leveldb::Status status = children_of(env_, directory, names);
    if (!status.ok()) return translate_leveldb(status, "listing " + directory);
    names = sorted_children(std::move(names));
    // Below a mount point an empty directory may lie.
    return names.empty() ? Status(StatusCode::kNotFound, directory + " is empty") : Status();
  });
  if (listed.code() == StatusCode::kNotFound) return std::vector<std::string>();
  if (!listed.ok()) return listed;
  return names;
}

Status FileTree::make_directory(const std::string& directory) const {
  if (Status bad = create_directory(directory); !bad.ok()) return bad;
  return sync_directory(parent_directory(directory));
}

Status FileTree::make_directories(const std::string& directory) const {
  // What exists was made by this function, which made the directory above durable before.
  if (!exists(directory)) {
    const std::string parent = parent_directory(directory);
    if (parent != "." && parent != "/") {
      if (Status bad = make_directories(parent); !bad.ok()) return bad;
    }
  }
  return make_directory(directory);
}

Status FileTree::rename_file(const std::string& from, const std::string& to) const {
  return confirmed(from, [&] {
    return translate_leveldb(env_.RenameFile(from, to), "renaming " + from + " to " + to);
  });
}

Status FileTree::rename(const std::string& from, const std::string& to) const {
  if (Status bad = rename_file(from, to); !bad.ok()) return bad;
  const std::string source = parent_directory(from);
  const std::string target = parent_directory(to);
  if (Status unsynced = sync_directory(target); !unsynced.ok()) return unsynced;
  return source == target ? Status() : sync_directory(source);
}

Status FileTree::rename_one_by_one(const std::vector<Renaming>& files) const {
  for (const Renaming& file : files) {
    if (Status bad = make_directory(parent_directory(file.to)); !bad.ok()) return bad;
    if (Status bad = rename(file.from, file.to); !bad.ok()) return bad;
  }
  return {};
}

Status FileTree::rename_all(const std::vector<Renaming>& files) const {
  if (files.empty()) return {};
  if (!open_sync_) return rename_one_by_one(files);
  const std::string anywhere = parent_directory(files.front().to);
  if (Status bad = create_directory(anywhere); !bad.ok()) return bad;
  const Result<EverythingSync> make_durable = open_confirmed_sync(anywhere);
  if (!make_durable.ok()) return make_durable.status();
  for (const Renaming& file : files) {
    if (Status bad = create_directory(parent_directory(file.to)); !bad.ok()) return bad;
  }
  return rename_durably(files, *make_durable);
}

// First the files to be renamed and the new directories are synced: a name in a directory that a
// crash takes away would be lost with it.
Status FileTree::rename_durably(const std::vector<Renaming>& files,
                                const EverythingSync& sync) const {
  if (Status bad = sync(); !bad.ok()) return bad;
  for (const Renaming& file : files) {
    if (Status bad = rename_file(file.from, file.to); !bad.ok()) return bad;
  }
  return sync();
}

Status FileTree::remove_file(const std::string& path) const {
  const Status removed =
      confirmed(path, [&] { return translate_leveldb(env_.RemoveFile(path), "removing " + path); });
  return removed.code() == StatusCode::kNotFound ? Status() : removed;
}

Status FileTree::remove_directory(const std::string& path) const {
  const Result<std::vector<std::string>> names = list_with_drafts(path);
  if (!names.ok()) return names.status();
  if (!std::ranges::all_of(*names, is_draft)) return {};
  for (const std::string& draft : *names) {
    if (Status bad = remove_file(path + "/" + draft); !bad.ok()) return bad;
  }
  if (Status bad = remove_empty_directory(path); !bad.ok()) {
    // Something has come into it meanwhile, or it cannot be removed.
    const Result<std::vector<std::string>> left = list_with_drafts(path);
    return left.ok() && !left->empty() ? Status() : bad;
  }
  return sync_directory_if_there(parent_directory(path));
}

Status FileTree::remove_trees(const std::vector<std::string>& paths) const {
  std::set<std::string> parents;
  for (const std::string& path : paths) {
    if (Status bad = remove_recursively(path); !bad.ok()) return bad;
    parents.insert(parent_directory(path));
  }
  for (const std::string& parent : parents) {
    if (Status bad = sync_directory_if_there(parent); !bad.ok()) return bad;
  }
  return {};
}

Status FileTree::remove_empty_directory(const std::string& path) const {
  const Status removed =
      confirmed(path, [&] { return translate_leveldb(env_.RemoveDir(path), "removing " + path); });
  return removed.code() == StatusCode::kNotFound ? Status() : removed;
}

Status FileTree::remove_recursively(const std::string& path) const {
  std::vector<std::string> names;
  bool is_directory = false;
  const Status listed = confirmed(path, [&] {
    const leveldb::Status status = children_of(env_, path, names);
    is_directory = status.ok();
    return status.IsNotFound() ? translate_leveldb(status, "listing " + path) : Status();
  });
  if (listed.code() == StatusCode::kNotFound) return {};
  if (!listed.ok()) return listed;
  if (!is_directory) return remove_file(path);
  for (const std::string& name : sorted_children(std::move(names))) {
    if (Status bad = remove_recursively(path + "/" + name); !bad.ok()) return bad;
  }
  return remove_empty_directory(path);
}

}  // namespace pv2::cluster
