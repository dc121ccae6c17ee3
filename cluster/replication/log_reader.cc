// SPDX-License-Identifier: Apache-2.0
//
// A part is of one file. The files are listed for each part: a log moves to oldwals/ at any time,
// but never back, so the server's own directory is looked at first.

#include "replication/log_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "storage/write_ahead_log.h"

namespace pv2::cluster {
namespace {

constexpr char kUserLog = 'u';

std::string log_called(std::uint64_t number) { return fmt::format("{}{}", kUserLog, number); }

}  // namespace

Status LogReader::add_names(const std::string& directory, Files& found, std::uint64_t first) const {
  const Result<std::vector<std::string>> names = files_.list(directory);
  if (!names.ok()) return names.status();
  const bool is_old = directory == layout_.old_wals();
  for (const std::string& name : *names) {
    // A log in the server's own directory is named as if it were an old one of this server.
    const auto log =
        ClusterLayout::parse_old_wal(is_old ? name : ClusterLayout::log_name(owner_, name));
    if (!log || log->server != owner_ || log->kind != kUserLog || log->number < first) continue;
    std::string path = directory;
    path += "/" + name;
    std::uint64_t bytes = 0;
    if (log->bytes) {
      bytes = *log->bytes;
    } else {
      const Result<std::uint64_t> size = files_.size(path);
      if (size.status().code() == StatusCode::kNotFound) continue;
      if (!size.ok()) return size.status();
      bytes = *size;
    }
    found[log->number] = {std::move(path), bytes};
  }
  return {};
}

Result<LogReader::Files> LogReader::list(std::uint64_t first,
                                         const std::optional<LogPosition>& durable_end,
                                         Most most) const {
  Files found;
  if (durable_end) {
    if (Status bad = add_names(layout_.wals(owner_), found, first); !bad.ok()) return bad;
  } else {
    const Result<bool> waits = files_.is_there(layout_.splitting(owner_));
    if (!waits.ok()) return waits.status();
    if (*waits)
      return Status(StatusCode::kUnavailable,
                    "the logs of " + to_string(owner_) + " are not split yet");
  }
  // Most of the time the wanted log is the current one, and oldwals/ may be large.
  if (most == Most::kAll || !found.contains(first)) {
    if (Status bad = add_names(layout_.old_wals(), found, first); !bad.ok()) return bad;
  }
  if (durable_end) {
    // Fenced: its logs may lie where they were not looked for. They never come back, so those that
    // were looked for before were in their places.
    if (!files_.exists(layout_.wals(owner_)))
      return Status(StatusCode::kUnavailable, "the logs of this server are recovered by others");
    std::erase_if(found, [&](const auto& file) { return file.first > durable_end->log; });
    if (const auto last = found.find(durable_end->log); last != found.end())
      last->second.bytes = durable_end->offset;
  }
  return found;
}

Result<LogPart> LogReader::read(LogPosition from,
                                const std::optional<LogPosition>& durable_end) const {
  LogPart part{.entries = {}, .next = from, .is_end = true};
  if (durable_end && from >= *durable_end) return part;
  const Result<Files> files = list(from.log, durable_end, Most::kOne);
  if (!files.ok()) return files.status();
  for (auto entry = files->begin(); entry != files->end(); ++entry) {
    const auto& [number, file] = *entry;
    if (number != from.log) {
      if (entry != files->begin()) return part;  // the one between may be in oldwals/
      from = {.log = number, .offset = 0};
    }
    const Result<LogPosition> next = read_file(file, from, part);
    if (next.status().code() == StatusCode::kNotFound) {
      return Status(StatusCode::kUnavailable, file.path + " was moved meanwhile");
    }
    if (!next.ok()) return next.status();
    part.next = from = *next;
    const bool is_read = next->offset >= file.bytes;
    part.is_end = is_read && std::next(entry) == files->end();
    // The next log begins where this one has ended.
    if (is_read && !part.is_end) part.next = from = {.log = number + 1, .offset = 0};
    if (!part.entries.empty() || !is_read) return part;
  }
  return part;
}

Result<LogPosition> LogReader::read_file(const File& file, LogPosition from, LogPart& part) const {
  const std::string name = ClusterLayout::log_name(owner_, log_called(from.log));
  std::size_t length = limits_.bytes_max;
  while (from.offset < file.bytes) {
    const std::uint64_t rest = file.bytes - from.offset;
    const std::size_t wanted = std::min<std::uint64_t>(length, rest);
    const Result<std::string> bytes = files_.read_part(file.path, from.offset, wanted);
    if (!bytes.ok()) return bytes.status();
    const Result<std::uint64_t> end =
        read_wal_part(*bytes, from.offset, name, [&](WalEntry& entry, std::uint64_t) {
          part.entries.push_back(std::move(entry));
          return part.entries.size() < limits_.entries_max;
        });
    if (!end.ok()) return end.status();
    if (*end > from.offset) return LogPosition{.log = from.log, .offset = *end};
    if (wanted < rest) {
      length *= 2;  // an entry that is larger than a part
      continue;
    }
    if (!has_synced_frame(*bytes, from.offset, name)) break;  // the torn end of the log
    return Status(
        StatusCode::kCorruption,
        fmt::format("log {} is damaged at byte {}: what follows cannot be shipped; remove "
                    "the peer and add it again, and copy its tables",
                    name, from.offset));
  }
  return LogPosition{.log = from.log, .offset = std::max(from.offset, file.bytes)};
}

Result<std::uint64_t> LogReader::bytes_behind(LogPosition from,
                                              const std::optional<LogPosition>& durable_end) const {
  if (durable_end && from.log == durable_end->log) {
    return durable_end->offset - std::min(from.offset, durable_end->offset);
  }
  const Result<Files> files = list(from.log, durable_end, Most::kAll);
  if (!files.ok()) return files.status();
  std::uint64_t bytes = 0;
  for (const auto& [number, file] : *files) {
    bytes += file.bytes - (number == from.log ? std::min(from.offset, file.bytes) : 0);
  }
  return bytes;
}

}  // namespace pv2::cluster
