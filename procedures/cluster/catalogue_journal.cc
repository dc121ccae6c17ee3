// SPDX-License-Identifier: Apache-2.0
//
// The catalogue's file: replayed when it is opened, appended to afterwards.

#include "cluster/catalogue_journal.h"

#include <fcntl.h>
#include <pv2/base/fields.h>
#include <pv2/base/frame.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "cluster/disk.h"

namespace pv2 {
namespace {

/// The entries of `bytes`, and how many bytes they take; the bytes after them are a torn tail.
Result<std::pair<std::vector<JournalEntry>, std::size_t>> decode(std::string_view bytes) {
  std::vector<JournalEntry> entries;
  std::string_view rest = bytes;
  while (const auto frame = read_frame(rest)) {
    JournalEntry entry;
    if (Status bad = decode_fields(entry, FieldSelection::kAll, *frame); !bad.ok()) return bad;
    entries.push_back(std::move(entry));
  }
  return std::pair{std::move(entries), bytes.size() - rest.size()};
}

Result<std::string> read_bytes(const std::filesystem::path& path) {
  Result<std::string> bytes = internal::read_file(path);
  if (bytes.status().code() == StatusCode::kNotFound) return std::string();
  return bytes;
}

}  // namespace

Result<std::vector<JournalEntry>> read_journal(const std::filesystem::path& path) {
  Result<std::string> bytes = read_bytes(path);
  if (!bytes.ok()) return bytes.status();
  auto decoded = decode(*bytes);
  if (!decoded.ok()) return decoded.status().with_context("catalogue journal " + path.string());
  return std::move(decoded->first);
}

Result<std::unique_ptr<CatalogueJournal>> CatalogueJournal::open(
    const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return internal::io_error("open catalogue journal", path);
  std::unique_ptr<CatalogueJournal> journal(new CatalogueJournal(path, fd));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return Status(StatusCode::kBusy, "catalogue journal " + path.string() +
                                         " is open in another process; end that one first");
  }
  Result<std::string> bytes = read_bytes(path);
  if (!bytes.ok()) return bytes.status();
  auto decoded = decode(*bytes);
  if (!decoded.ok()) return decoded.status().with_context("catalogue journal " + path.string());
  const auto& [entries, whole] = *decoded;
  if (whole < bytes->size() && ::ftruncate(fd, static_cast<off_t>(whole)) != 0) {
    return internal::io_error("cut the torn tail off", path);
  }
  for (const JournalEntry& entry : entries) {
    if (entry.kind != JournalEntry::Kind::kApplied) continue;
    const Result<Applied> again = journal->state_.apply(entry.write);
    if (!again.ok() || *again != Applied::kNow) {
      return Status(StatusCode::kCorruption, "catalogue journal " + path.string() + ": effect " +
                                                 entry.write.effect_key + " cannot be replayed");
    }
  }
  // What was read may be only in the page cache: the process that wrote it may have died before its
  // sync.
  if (::fdatasync(fd) != 0) return internal::io_error("sync", path);
  if (Status bad = internal::sync_directory(path.parent_path()); !bad.ok()) return bad;
  return journal;
}

CatalogueJournal::~CatalogueJournal() { ::close(fd_); }

Result<Applied> CatalogueJournal::apply(CatalogueWrite write) {
  if (!failure_.ok()) return failure_;
  // In memory first: no other code looks at the state before this returns, and after a failed
  // append the journal takes no more writes.
  const Result<Applied> applied = state_.apply(write);
  JournalEntry entry{JournalEntry::Kind::kApplied, std::move(write), {}};
  if (!applied.ok()) {
    entry.kind = JournalEntry::Kind::kRefused;
    entry.reason = applied.status().to_string();
  } else if (*applied == Applied::kBefore) {
    entry.kind = JournalEntry::Kind::kRepeated;
  }
  failure_ = append(std::move(entry));
  if (!failure_.ok()) return failure_;
  return applied;
}

Status CatalogueJournal::append(JournalEntry entry) {
  std::string bytes;
  FrameWriter frame(bytes);
  encode_fields(entry, FieldSelection::kAll, bytes);
  frame.finish();
  if (::write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    return internal::io_error("append to", path_);
  }
  if (entry.kind == JournalEntry::Kind::kApplied && ::fdatasync(fd_) != 0) {
    return internal::io_error("sync", path_);
  }
  return {};
}

}  // namespace pv2
