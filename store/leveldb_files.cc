// SPDX-License-Identifier: Apache-2.0
//
// Whole files through leveldb::Env. Every failure names the file.

#include "leveldb_files.h"

#include <fcntl.h>
#include <leveldb/slice.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <system_error>

namespace pv2 {

Status translate(const leveldb::Status& status) {
  if (status.ok()) return Status();
  std::string message = status.ToString();
  if (status.IsCorruption()) return Status(StatusCode::kCorruption, std::move(message));
  if (status.IsNotFound()) return Status(StatusCode::kNotFound, std::move(message));
  if (status.IsNotSupportedError()) return Status(StatusCode::kNotSupported, std::move(message));
  if (message.find("No space left on device") != std::string::npos ||
      message.find("Disk quota exceeded") != std::string::npos) {
    return Status(StatusCode::kStorageFull, std::move(message));
  }
  return Status(StatusCode::kIoError, std::move(message));
}

Status not_absent(const Status& status) {
  if (status.code() != StatusCode::kNotFound) return status;
  return Status(StatusCode::kIoError, std::string(status.message()));
}

Status sync_directory(const std::string& directory) {
  const auto failed = [&](const char* act) {
    return Status(StatusCode::kIoError, std::string("cannot ") + act + " directory " + directory +
                                            ": " + std::generic_category().message(errno));
  };
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return failed("open");
  const Status status = ::fsync(fd) == 0 ? Status() : failed("sync");
  ::close(fd);
  return status;
}

std::string parent_of(const std::string& path) {
  const std::size_t last = path.find_last_not_of('/');
  const std::size_t slash = path.find_last_of('/', last);
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  const std::string_view name =
      last == std::string::npos ? "" : std::string_view(path).substr(begin, last + 1 - begin);
  if (name == "." || name == "..") return path + "/..";
  if (slash == std::string::npos || last == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<std::string> LevelDbFiles::read(const std::string& path) const {
  std::string text;
  const Status status = translate(leveldb::ReadFileToString(&env_, path, &text));
  if (!status.ok()) return status.with_context("reading " + path);
  return text;
}

// access(), by which LevelDB's FileExists() looks, does not tell what is absent from what it could
// not look at.
Result<bool> LevelDbFiles::exists(const std::string& path) const {
  if (env_.FileExists(path)) return true;
  std::uint64_t bytes = 0;
  const Status looked = translate(env_.GetFileSize(path, &bytes));
  // An earlier part of the path may be a file.
  const bool is_below_a_file = looked.message().ends_with(std::generic_category().message(ENOTDIR));
  if (looked.code() == StatusCode::kNotFound || is_below_a_file) return false;
  if (!looked.ok()) return looked.with_context("looking for " + path);
  return true;
}

Status LevelDbFiles::replace(const std::string& path, std::string_view text) const {
  const std::string draft = path + ".new";
  leveldb::WritableFile* opened = nullptr;
  leveldb::Status status = env_.NewWritableFile(draft, &opened);
  if (!status.ok()) return translate(status).with_context("creating " + draft);
  const std::unique_ptr<leveldb::WritableFile> file(opened);
  status = file->Append(leveldb::Slice(text.data(), text.size()));
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = file->Close();
  if (status.ok()) status = env_.RenameFile(draft, path);
  if (!status.ok()) {
    env_.RemoveFile(draft);
    return translate(status).with_context("writing " + path);
  }
  return sync_(parent_of(path));
}

Result<std::vector<std::string>> LevelDbFiles::list(const std::string& directory) const {
  std::vector<std::string> names;
  const Status status = translate(env_.GetChildren(directory, &names));
  if (!status.ok()) return status.with_context("listing " + directory);
  std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::vector<std::string>> LevelDbFiles::list_store(const std::string& directory) const {
  auto names = list(directory);
  if (!names.ok()) return not_absent(names.status());
  if (std::binary_search(names->begin(), names->end(), kStoreMarker)) return names;
  return Status(StatusCode::kIoError,
                "listing " + directory + ": the list is without " + std::string(kStoreMarker) +
                    ", which was there before: the store is out of sight, or was moved or "
                    "removed. Nothing was changed; try again when the path leads to the store");
}

}  // namespace pv2
