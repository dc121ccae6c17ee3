// SPDX-License-Identifier: Apache-2.0
//
// LevelDbDirectory. The check of the logs relies on LevelDB numbering its operations without gaps:
// a record that does not continue the previous one means that something in between is lost,
// whichever file it was in.

#include "leveldb_directory.h"

#include <fmt/format.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/table.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "leveldb_log_file.h"
#include "little_endian.h"
#include "log/segment_pool.h"
#include "system_env.h"

namespace pv2 {
namespace {

constexpr std::string_view kMarker = kStoreMarker;
constexpr std::string_view kLock = "PV2-LOCK";
constexpr std::string_view kMarkerFirstLine = "pv2 store\n";
constexpr std::size_t kLogRecordHeader = 12;  // a 64-bit sequence and a 32-bit count
constexpr std::size_t kPathBytesMax = 4'000;  // of PATH_MAX; names of files follow
// LevelDB counts on from the highest number that it finds, and ends the process at an overflow.
constexpr std::uint64_t kFileNumberMax = std::uint64_t{1} << 62;

std::string marker_text(std::string_view state, std::uint32_t format = kLevelDbStoreFormat) {
  return fmt::format("{}format {}\n{}\n", kMarkerFirstLine, format, state);
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

Status is_a_file(const std::string& path) {
  return Status(StatusCode::kFailedPrecondition,
                fmt::format("{} is a file; a store is a directory. Choose another path", path));
}

// One look: what two looks say need not be about the same.
bool is_no_directory(const std::string& path) {
  std::error_code unknown;
  const auto found = std::filesystem::status(path, unknown);
  return std::filesystem::exists(found) && !std::filesystem::is_directory(found);
}

bool says(const Status& status, std::string_view what) {
  return status.message().find(what) != std::string_view::npos;
}

bool is_table(std::string_view name) { return name.ends_with(".ldb") || name.ends_with(".sst"); }

bool is_step_file(std::string_view name) { return name.starts_with(SegmentPool::kFilePrefix); }

// The number of a log or a table of LevelDB.
std::optional<std::uint64_t> number_of_data(std::string_view name) {
  for (const std::string_view extension : {".log", ".ldb", ".sst"}) {
    if (const auto number = number_of(name, extension)) return number;
  }
  return std::nullopt;
}

}  // namespace

LevelDbDirectory::LevelDbDirectory(std::string path, LevelDbFiles files)
    : path_(std::move(path)), files_(std::move(files)) {}

// Refuses paths to which the file system would give a puzzling answer. Only the default Env's files
// are looked at: a test's file system has none.
Status LevelDbDirectory::check_path() const {
  const auto refused = [](std::string why) {
    return Status(StatusCode::kInvalidArgument, std::move(why));
  };
  if (path_.empty()) return refused("the path of a store is empty; name a directory");
  if (path_.find('\0') != std::string::npos) {
    return refused("the path of a store contains a zero byte, where the system would cut it");
  }
  if (path_.size() > kPathBytesMax) {
    return refused(
        fmt::format("the path of a store has {} bytes; at most {} leave room for its files",
                    path_.size(), kPathBytesMax));
  }
  if (&files_.env() != &system_env()) return Status();

  std::error_code failed;
  if (path_.front() != '/' && std::filesystem::current_path(failed).empty()) {
    return Status(
        StatusCode::kNotFound,
        fmt::format("store {}: a relative path leads nowhere, because the current directory "
                    "of the process cannot be found ({}); give an absolute path",
                    path_, failed.message()));
  }
  std::string link = path_;  // with a slash at its end the path would name the link's target
  while (link.size() > 1 && link.back() == '/') link.pop_back();
  if (std::filesystem::is_symlink(link, failed) && !std::filesystem::exists(link, failed)) {
    return Status(StatusCode::kFailedPrecondition,
                  fmt::format("{} is a symbolic link to {}, which does not exist or cannot be "
                              "reached; create that directory, or correct the link",
                              link, std::filesystem::read_symlink(link, failed).string()));
  }
  if (is_no_directory(link)) return is_a_file(link);
  const std::string parent = parent_of(path_);
  if (is_no_directory(parent)) return is_a_file(parent).with_context("store " + path_);
  return Status();
}

Result<bool> LevelDbDirectory::has_marker() const {
  return files_.exists(file(std::string(kMarker)));
}

Result<LevelDbDirectory::Contents> LevelDbDirectory::examine() const {
  if (Status status = check_path(); !status.ok()) return status;
  const auto there = files_.exists(path_);
  if (!there.ok()) return explain_unreadable(there.status());
  if (!*there) {
    const std::string parent = parent_of(path_);
    const auto has_parent = files_.exists(parent);
    if (!has_parent.ok()) return explain_unreadable(has_parent.status());
    if (*has_parent) return Contents::kMissing;
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
  if (*text == marker_text("complete")) return Contents::kStore;
  for (std::uint32_t format = kLevelDbStoreFormat; format != 0; --format) {
    if (*text == marker_text("creating", format)) return Contents::kUnfinished;
    if (*text != marker_text("complete", format)) continue;
    const bool with_steps = std::any_of(names->begin(), names->end(), is_step_file);
    if (!with_steps) return Contents::kOlderStore;
    return damaged(
        std::string(kMarker),
        fmt::format("it names format {}, which has no step log, and there is one", format));
  }

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

// An empty directory may become a store; one with other files, or with a LevelDB database of
// another program, may not.
Status LevelDbDirectory::refuse_strangers(const std::vector<std::string>& names) const {
  std::size_t strangers = 0;
  std::string_view first;
  for (const std::string& name : names) {
    // An interrupted creation leaves these before its marker is there.
    if (name == kLock || name == std::string(kMarker) + ".new") continue;
    if (strangers++ == 0) first = name;
  }
  if (strangers == 0) return Status();
  if (std::binary_search(names.begin(), names.end(), kMark)) {
    const bool with_steps = std::any_of(names.begin(), names.end(), is_step_file);
    return damaged(std::string(kMarker),
                   with_steps ? fmt::format("it is missing; if it is all that is missing, make it "
                                            "anew with these lines: 'pv2 store', 'format {}', "
                                            "'complete'",
                                            kLevelDbStoreFormat)
                              : "it is missing");
  }
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
    return is_a_file(path_);
  }
  if (says(cause, "Read-only file system")) {
    return Status(StatusCode::kIoError,
                  fmt::format("store {}: {}; a store cannot be opened without writing: mount the "
                              "file system for writing, or copy the directory elsewhere",
                              path_, cause.message()));
  }
  if (!says(cause, "Permission denied")) return not_absent(cause).with_context("store " + path_);
  return Status(StatusCode::kIoError,
                fmt::format("store {}: {}; the process needs permission to read and write the "
                            "directory and everything in it",
                            path_, cause.message()));
}

Status LevelDbDirectory::create() const {
  const Status status = translate(files_.env().CreateDir(path_));
  if (status.ok() || files_.env().FileExists(path_)) return Status();
  return explain_unreadable(status);
}

Status LevelDbDirectory::sync_name() const { return files_.sync_directory(parent_of(path_)); }

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
  if (current.status().code() == StatusCode::kNotFound) return missing("CURRENT");
  if (!current.ok()) return explain_unreadable(current.status());
  if (!current->starts_with("MANIFEST-") || !current->ends_with('\n')) {
    return damaged("CURRENT", "it does not name a MANIFEST");
  }

  const std::string name = current->substr(0, current->size() - 1);
  const auto bytes = files_.read(file(name));
  if (bytes.status().code() == StatusCode::kNotFound) return missing(name);
  if (!bytes.ok()) return explain_unreadable(bytes.status());
  const LogFileContents contents = read_log_file(*bytes);
  if (contents.end == LogFileContents::End::kDamaged) return damaged(name, contents.problem);
  auto manifest = read_manifest(contents.records);
  if (!manifest.ok()) return damaged(name, std::string(manifest.status().message()));
  if (manifest->next_file == 0 || manifest->log_number == 0) {
    return damaged(name,
                   fmt::format("it is cut short: of {} bytes, what is whole does not say which "
                               "log and tables are in use",
                               bytes->size()));
  }
  manifest->file = name;
  if (contents.end == LogFileContents::End::kUnwritten) {
    manifest->shown = {name, bytes->substr(0, contents.good_bytes), contents.problem};
  }
  return manifest;
}

// LevelDB removes a log or a table when a later record of the MANIFEST says that it is not needed
// any more. So if one is missing, and there are newer ones of which the MANIFEST knows nothing, it
// is more likely the MANIFEST that has lost its end.
Status LevelDbDirectory::missing(const Manifest& manifest, const std::string& name) const {
  if (manifest.shown) {
    return damaged(manifest.file, fmt::format("{}, and {} is missing", manifest.shown->why, name));
  }
  const auto names = files_.list_store(path_);
  if (!names.ok()) return explain_unreadable(names.status());
  for (const std::string& other : *names) {
    const auto number = number_of_data(other);
    if (!number || *number < manifest.next_file) continue;
    return damaged(manifest.file,
                   fmt::format("its end is missing: it knows nothing of {}, which is there, and "
                               "needs {}, which is not",
                               other, name));
  }
  return damaged(name, "it is missing");
}

// A file is missing only from a directory in which the rest of the store can be seen.
Status LevelDbDirectory::missing(const std::string& name) const {
  const auto names = files_.list_store(path_);
  return names.ok() ? damaged(name, "it is missing") : explain_unreadable(names.status());
}

Status LevelDbDirectory::no_store(Contents contents) const {
  Status seen = contents == Contents::kEmpty ? verify_empty() : Status();
  return seen.ok() ? Status(StatusCode::kNotFound, "there is no store at " + path_) : seen;
}

Status LevelDbDirectory::verify_empty() const {
  for (const std::string& name : {std::string(kMarker), std::string("CURRENT")}) {
    const auto there = files_.exists(file(name));
    if (!there.ok()) return explain_unreadable(there.status());
    if (!*there) continue;
    return Status(StatusCode::kIoError,
                  fmt::format("store {}: its list of files was without {}, which is there: the "
                              "directory was out of sight, or somebody makes a store in it. "
                              "Nothing was changed; try again",
                              path_, name));
  }
  return Status();
}

// At every moment of a creation there are only logs without a record, no table and no step log.
Status LevelDbDirectory::verify_unfinished() const {
  const auto names = files_.list_store(path_);
  if (!names.ok()) return explain_unreadable(names.status());
  for (const std::string& name : *names) {
    if (!number_of_data(name) && !is_step_file(name)) continue;
    std::uint64_t bytes = 0;
    const Status status = translate(files_.env().GetFileSize(file(name), &bytes));
    if (!status.ok()) return explain_unreadable(status);
    if (bytes == 0 && !is_table(name)) continue;
    return Status(
        StatusCode::kCorruption,
        fmt::format(
            "store {} is damaged: {}: it says that the store was never finished, which "
            "would be emptied and made again, but {} holds {} bytes. No data was changed. If "
            "this is a store that worked, restore {} from a backup, or write \"complete\" in "
            "place of \"creating\"; if the files are of no use, remove them",
            path_, kMarker, name, bytes, kMarker));
  }
  return Status();
}

std::string LevelDbDirectory::newest_log() const {
  const auto current = manifest();
  const auto logs = current.ok() ? live_logs(*current) : current.status();
  return logs.ok() && !logs->empty() ? logs->back().file : "the last log";
}

Result<WithoutEnds> LevelDbDirectory::verify(bool has_step_log) const {
  auto current = manifest();
  if (!current.ok()) return current.status();
  if (Status status = verify_table_files(*current); !status.ok()) return status;
  auto log = verify_logs(*current, has_step_log);
  if (!log.ok()) return log.status();
  return WithoutEnds{std::move(current->shown), *std::move(log)};
}

Result<std::string> LevelDbDirectory::table_file(const Manifest& manifest,
                                                 std::uint64_t number) const {
  for (const char* const extension : {"ldb", "sst"}) {
    std::string name = fmt::format("{:06}.{}", number, extension);
    const auto there = files_.exists(file(name));
    if (!there.ok()) return explain_unreadable(there.status());
    if (*there) return name;
  }
  return missing(manifest, fmt::format("{:06}.ldb", number));
}

Status LevelDbDirectory::verify_table_files(const Manifest& manifest) const {
  for (const auto& [number, size] : manifest.tables) {
    const auto name = table_file(manifest, number);
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
  const auto names = files_.list_store(path_);
  if (!names.ok()) return explain_unreadable(names.status());
  std::vector<LiveLog> logs;
  bool found = false;
  for (const std::string& name : *names) {
    const auto number = number_of(name, ".log");
    if (!number) continue;
    found = found || *number == manifest.log_number;
    if (*number > kFileNumberMax) {
      return damaged(name, "LevelDB gives no file such a number; if it is not yours, move it away");
    }
    if (*number >= manifest.log_number || *number == manifest.previous_log_number) {
      logs.push_back({name, *number});
    }
  }
  if (!found) return missing(manifest, fmt::format("{:06}.log", manifest.log_number));
  std::sort(logs.begin(), logs.end(),
            [](const LiveLog& a, const LiveLog& b) { return a.number < b.number; });
  return logs;
}

Result<std::optional<ShownFile>> LevelDbDirectory::verify_logs(const Manifest& manifest,
                                                               bool has_step_log) const {
  const auto logs = live_logs(manifest);
  if (!logs.ok()) return logs.status();
  std::uint64_t next = 0;  // the operation that the next record must begin with; 0: none was seen
  std::string suspect;     // the file that lost something if there is a gap
  std::optional<ShownFile> cut;
  for (const LiveLog& log : *logs) {
    const auto bytes = files_.read(file(log.file));
    if (!bytes.ok()) return explain_unreadable(bytes.status());
    const LogFileContents contents = read_log_file(*bytes);
    if (suspect.empty()) suspect = log.file;
    // A log gets bytes when all of the one before it is durable.
    if (!bytes->empty() && cut) return damaged(cut->file, cut->why);
    if (!contents.records.empty() && next == 0 && suspect != log.file) {
      return damaged(suspect, "it has no record, and " + log.file + ", which is newer, has");
    }
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
    using End = LogFileContents::End;
    const bool is_cut = contents.end == End::kDamaged || contents.end == End::kUnwritten;
    if (is_cut && !has_step_log) return damaged(log.file, contents.problem);
    if (is_cut) {
      cut = {log.file, bytes->substr(0, contents.good_bytes), contents.problem};
    }
  }
  return cut;
}

Status LevelDbDirectory::verify_tables() const {
  const auto current = manifest();
  if (!current.ok()) return current.status();
  for (const auto& [number, size] : current->tables) {
    const auto name = table_file(*current, number);
    if (!name.ok()) return name.status();
    leveldb::RandomAccessFile* opened = nullptr;
    leveldb::Status status = files_.env().NewRandomAccessFile(file(*name), &opened);
    const std::unique_ptr<leveldb::RandomAccessFile> bytes(opened);
    if (!status.ok()) return explain_unreadable(translate(status));
    leveldb::Table* table = nullptr;
    leveldb::Options options;
    options.paranoid_checks = true;
    status = leveldb::Table::Open(options, bytes.get(), size, &table);
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
