// SPDX-License-Identifier: Apache-2.0
//
// LevelDbDirectory. The check of the logs leans on LevelDB numbering its operations without gaps: a
// record that does not continue the previous one means that something in between is lost, whichever
// file it was in.

#include "leveldb_directory.h"

#include <fmt/format.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/table.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "leveldb_log_file.h"
#include "little_endian.h"

namespace pv2 {
namespace {

constexpr std::string_view kMarker = "PV2-STORE";
constexpr std::string_view kLock = "PV2-LOCK";
constexpr std::string_view kMarkerFirstLine = "pv2 store\n";
constexpr std::size_t kLogRecordHeader = 12;  // a 64-bit sequence and a 32-bit count

std::string marker_text(std::string_view state) {
  return fmt::format("{}format {}\n{}\n", kMarkerFirstLine, kLevelDbStoreFormat, state);
}

// The number of "000123.log".
std::optional<std::uint64_t> number_of(std::string_view name, std::string_view extension) {
  if (!name.ends_with(extension)) return std::nullopt;
  name.remove_suffix(extension.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

bool denied(const Status& status) {
  return status.message().find("Permission denied") != std::string_view::npos;
}

}  // namespace

LevelDbDirectory::LevelDbDirectory(std::string path, LevelDbFiles files)
    : path_(std::move(path)), files_(std::move(files)) {}

Result<LevelDbDirectory::Contents> LevelDbDirectory::examine() const {
  if (!files_.env().FileExists(path_)) {
    const std::string parent = parent_of(path_);
    if (files_.env().FileExists(parent)) return Contents::kMissing;
    return Status(StatusCode::kNotFound,
                  fmt::format("there is no store at {}, and its parent directory {} does not exist "
                              "or cannot be reached; create that first",
                              path_, parent));
  }
  const auto names = files_.list(path_);
  if (!names.ok()) return explain_unreadable(names.status());
  const bool marked = std::binary_search(names->begin(), names->end(), kMarker);
  if (!marked) {
    Status status = refuse_strangers(*names);
    if (!status.ok()) return status;
    return Contents::kEmpty;
  }

  const auto text = files_.read(file(std::string(kMarker)));
  if (!text.ok()) return explain_unreadable(text.status());
  if (*text == marker_text("creating")) return Contents::kUnfinished;
  if (*text == marker_text("complete")) return Contents::kStore;

  std::uint32_t format = 0;
  const std::string_view rest = std::string_view(*text).substr(
      text->starts_with(kMarkerFirstLine) ? kMarkerFirstLine.size() : text->size());
  constexpr std::string_view kFormat = "format ";
  if (rest.starts_with(kFormat)) {
    std::from_chars(rest.data() + kFormat.size(), rest.data() + rest.size(), format);
  }
  if (format > kLevelDbStoreFormat) {
    return Status(StatusCode::kNotSupported,
                  fmt::format("store {} has format {}, and this version reads up to format {}; use "
                              "the version that wrote it, or a later one",
                              path_, format, kLevelDbStoreFormat));
  }
  return damaged(std::string(kMarker), "it is not what a store writes");
}

// An empty directory may become a store; one with the files of others, or with a LevelDB database
// of another program, not.
Status LevelDbDirectory::refuse_strangers(const std::vector<std::string>& names) const {
  std::size_t strangers = 0;
  std::string_view first;
  for (const std::string& name : names) {
    // What an interrupted creation leaves before its marker is there.
    if (name == kLock || name == std::string(kMarker) + ".new") continue;
    if (strangers++ == 0) first = name;
  }
  if (strangers == 0) return Status();
  return Status(
      StatusCode::kFailedPrecondition,
      fmt::format("directory {} is not a pv2 store: it holds {}{} and no {}; choose "
                  "another directory, or an empty one",
                  path_, first, strangers == 1 ? "" : fmt::format(" and {} more", strangers - 1),
                  kMarker));
}

Status LevelDbDirectory::explain_unreadable(const Status& cause) const {
  struct stat facts {};
  if (::stat(path_.c_str(), &facts) == 0 && !S_ISDIR(facts.st_mode)) {
    return Status(StatusCode::kFailedPrecondition,
                  fmt::format("{} is a file; a store is a directory. Choose another path", path_));
  }
  if (!denied(cause)) return cause.with_context("store " + path_);
  return Status(StatusCode::kIoError,
                fmt::format("store {}: {}; the process needs permission to read and write the "
                            "directory and everything in it",
                            path_, cause.message()));
}

Status LevelDbDirectory::create() const {
  const Status status = translate(files_.env().CreateDir(path_));
  if (!status.ok()) return explain_unreadable(status);
  return files_.sync_directory(parent_of(path_));
}

Status LevelDbDirectory::mark_unfinished() const {
  const Status status = files_.replace(file(std::string(kMarker)), marker_text("creating"));
  return status.ok() ? status : explain_unreadable(status);
}

Status LevelDbDirectory::mark_complete() const {
  return files_.replace(file(std::string(kMarker)), marker_text("complete"));
}

Status LevelDbDirectory::damaged(const std::string& file, const std::string& what) const {
  return Status(
      StatusCode::kCorruption,
      fmt::format("store {} is damaged: {}: {}. No data was changed. Restore the directory "
                  "from a backup; if there is none, copy it aside and see salvage in the "
                  "operations manual",
                  path_, file, what));
}

Result<Manifest> LevelDbDirectory::manifest() const {
  const auto current = files_.read(file("CURRENT"));
  if (current.status().code() == StatusCode::kNotFound ||
      !files_.env().FileExists(file("CURRENT"))) {
    return damaged("CURRENT", "it is missing");
  }
  if (!current.ok()) return explain_unreadable(current.status());
  if (!current->starts_with("MANIFEST-") || !current->ends_with('\n')) {
    return damaged("CURRENT", "it does not name a MANIFEST");
  }

  const std::string name = current->substr(0, current->size() - 1);
  if (!files_.env().FileExists(file(name))) return damaged(name, "it is missing");
  const auto bytes = files_.read(file(name));
  if (!bytes.ok()) return explain_unreadable(bytes.status());
  const LogFileContents contents = read_log_file(*bytes);
  if (contents.end == LogFileContents::End::kDamaged) return damaged(name, contents.problem);
  auto manifest = read_manifest(contents.records);
  if (!manifest.ok()) return damaged(name, std::string(manifest.status().message()));
  return manifest;
}

Status LevelDbDirectory::verify() const {
  const auto current = manifest();
  if (!current.ok()) return current.status();
  Status status = verify_table_files(*current);
  return status.ok() ? verify_logs(*current) : status;
}

Result<std::string> LevelDbDirectory::table_file(std::uint64_t number) const {
  for (const char* const extension : {"ldb", "sst"}) {
    std::string name = fmt::format("{:06}.{}", number, extension);
    if (files_.env().FileExists(file(name))) return name;
  }
  return damaged(fmt::format("{:06}.ldb", number), "it is missing");
}

Status LevelDbDirectory::verify_table_files(const Manifest& manifest) const {
  for (const auto& [number, size] : manifest.tables) {
    const auto name = table_file(number);
    if (!name.ok()) return name.status();
    std::uint64_t actual = 0;
    const Status status = translate(files_.env().GetFileSize(file(*name), &actual));
    if (!status.ok()) return explain_unreadable(status);
    if (actual != size) {
      return damaged(*name, fmt::format("it has {} bytes and should have {}", actual, size));
    }
  }
  return Status();
}

Result<std::vector<LiveLog>> LevelDbDirectory::live_logs(const Manifest& manifest) const {
  const auto names = files_.list(path_);
  if (!names.ok()) return explain_unreadable(names.status());
  std::vector<LiveLog> logs;
  bool found = manifest.log_number == 0;
  for (const std::string& name : *names) {
    const auto number = number_of(name, ".log");
    if (!number) continue;
    found = found || *number == manifest.log_number;
    if (*number >= manifest.log_number || *number == manifest.previous_log_number) {
      logs.push_back({name, *number});
    }
  }
  if (!found) return damaged(fmt::format("{:06}.log", manifest.log_number), "it is missing");
  std::sort(logs.begin(), logs.end(),
            [](const LiveLog& a, const LiveLog& b) { return a.number < b.number; });
  return logs;
}

Status LevelDbDirectory::verify_logs(const Manifest& manifest) const {
  const auto logs = live_logs(manifest);
  if (!logs.ok()) return logs.status();
  std::uint64_t next = 0;  // the operation that the next record must begin with; 0: none was seen
  std::string suspect;     // the file that lost something if there is a gap
  for (const LiveLog& log : *logs) {
    const auto bytes = files_.read(file(log.file));
    if (!bytes.ok()) return explain_unreadable(bytes.status());
    const LogFileContents contents = read_log_file(*bytes);
    if (suspect.empty()) suspect = log.file;
    for (const std::string& record : contents.records) {
      if (record.size() < kLogRecordHeader) return damaged(log.file, "a record is too short");
      const std::uint64_t first = read_fixed64(record.data());
      const bool gap = next == 0 ? first > manifest.last_sequence + 1 : first != next;
      if (gap) {
        const std::uint64_t expected = next == 0 ? manifest.last_sequence + 1 : next;
        return damaged(suspect, fmt::format("operation {} is missing: {} goes on with {}", expected,
                                            log.file, first));
      }
      next = first + read_fixed32(record.data() + 8);
      suspect = log.file;
    }
    if (contents.end == LogFileContents::End::kDamaged) return damaged(log.file, contents.problem);
  }
  return Status();
}

Status LevelDbDirectory::verify_tables() const {
  const auto current = manifest();
  if (!current.ok()) return current.status();
  for (const auto& [number, size] : current->tables) {
    const auto name = table_file(number);
    if (!name.ok()) return name.status();
    leveldb::RandomAccessFile* opened = nullptr;
    leveldb::Status status = files_.env().NewRandomAccessFile(file(*name), &opened);
    const std::unique_ptr<leveldb::RandomAccessFile> bytes(opened);
    leveldb::Table* table = nullptr;
    leveldb::Options options;
    options.paranoid_checks = true;
    if (status.ok()) status = leveldb::Table::Open(options, bytes.get(), size, &table);
    const std::unique_ptr<leveldb::Table> owned(table);
    if (status.ok()) {
      leveldb::ReadOptions read;
      read.verify_checksums = true;
      read.fill_cache = false;
      const std::unique_ptr<leveldb::Iterator> rows(owned->NewIterator(read));
      for (rows->SeekToFirst(); rows->Valid(); rows->Next()) {
      }
      status = rows->status();
    }
    if (!status.ok()) return damaged(*name, status.ToString());
  }
  return Status();
}

}  // namespace pv2
