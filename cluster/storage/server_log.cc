// SPDX-License-Identifier: Apache-2.0
//
// One drain() at a time writes what waits. Only it touches the writer.

#include "storage/server_log.h"

#include <fmt/core.h>
#include <pv2/base/assert.h>

#include <algorithm>
#include <utility>

namespace pv2::cluster {
namespace {

std::size_t bytes_of(const WalEntry& entry) {
  std::size_t bytes = 64;
  for (const StoredCell& cell : entry.cells)
    bytes += cell.row.size() + cell.family.size() + cell.qualifier.size() + cell.value.size() + 16;
  return bytes;
}

}  // namespace

ServerLog::ServerLog(const FileTree& files, ClusterLayout layout, WorkQueue& work,
                     ServerName server, ServerLogOptions options)
    : files_(files),
      layout_(std::move(layout)),
      work_(work),
      server_(std::move(server)),
      options_(options) {}
ServerLog::~ServerLog() = default;

Result<std::unique_ptr<ServerLog>> ServerLog::open(const FileTree& files,
                                                   const ClusterLayout& layout, WorkQueue& work,
                                                   ServerName server, ServerLogOptions options) {
  std::unique_ptr<ServerLog> log(new ServerLog(files, layout, work, std::move(server), options));
  const std::string directory = layout.wals(log->server_);
  // The log of users comes first and makes the directory, once in a server's life. If the directory
  // is gone later, the master has fenced the server and removed it. A log that made it again would
  // hide the fence from the server.
  if (options.kind == LogKind::kUser) {
    if (Status bad = files.make_directories(directory); !bad.ok()) return bad;
  }
  if (Status bad = files.make_directories(layout.old_wals()); !bad.ok()) return bad;
  // After the directory was made: whoever fences this server from now on renames it.
  const Result<bool> fenced = files.is_there(layout.splitting(log->server_));
  if (!fenced.ok()) return fenced.status();
  if (*fenced) return Status(StatusCode::kFenced, to_string(log->server_) + " was declared dead");
  const Result<std::vector<std::string>> names = files.list(directory);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (name[0] == static_cast<char>(options.kind))
      return Status(StatusCode::kFailedPrecondition,
                    directory + "/" + name + " exists: a start code is used once");
  }
  if (Status bad = log->start_file(); !bad.ok()) return bad;
  return log;
}

void ServerLog::append(WalEntry entry, Done done) {
  const std::size_t bytes = bytes_of(entry);
  MutexLock lock(log_mutex_);
  waiting_.push_back({std::move(entry), std::move(done), bytes});
  waiting_bytes_ += bytes;
  schedule();
}

void ServerLog::schedule() {
  if (draining_ || waiting_.empty()) return;
  draining_ = true;
  work_.run([this] { drain(); });
}

void ServerLog::drain() {
  std::vector<Waiting> batch;
  Status status;
  {
    MutexLock lock(log_mutex_);
    batch.swap(waiting_);
    waiting_bytes_ = 0;
    status = failure_;
  }
  if (status.ok()) status = write(batch);
  {
    MutexLock lock(log_mutex_);
    if (status.ok()) {
      durable_end_.offset = writer_->size();
    } else {
      failure_ = status;
    }
  }
  for (Waiting& waiting : batch) waiting.done(status);

  if (status.ok() && writer_->size() >= options_.file_bytes_max) {
    if (Status bad = start_file(); !bad.ok()) {
      MutexLock lock(log_mutex_);
      failure_ = bad;
    }
  }
  MutexLock lock(log_mutex_);
  draining_ = false;
  schedule();
}

Status ServerLog::write(std::vector<Waiting>& batch) {
  {
    MutexLock lock(log_mutex_);
    for (const Waiting& waiting : batch) {
      std::uint64_t& highest = log_files_.back().highest[waiting.entry.region_id];
      highest = std::max(highest, waiting.entry.sequence);
    }
  }
  for (Waiting& waiting : batch) {
    if (Status bad = writer_->append(waiting.entry); !bad.ok()) return bad;
  }
  return writer_->sync();
}

Status ServerLog::start_file() {
  const std::uint64_t number = next_file_++;
  const std::string name = fmt::format("{}{}", static_cast<char>(options_.kind), number);
  const std::string path = layout_.wals(server_) + "/" + name;
  Result<std::unique_ptr<WalWriter>> writer =
      WalWriter::create(files_, path, ClusterLayout::log_name(server_, name));
  // Only a fence takes the directory away.
  if (writer.status().code() == StatusCode::kNotFound)
    return {StatusCode::kFenced, path + " cannot be made: its directory was taken over"};
  if (!writer.ok()) return writer.status();
  writer_ = *std::move(writer);
  MutexLock lock(log_mutex_);
  log_files_.push_back({name, {}});
  current_path_ = path;
  durable_end_ = {.log = number, .offset = 0};
  return {};
}

std::size_t ServerLog::waiting_bytes() const {
  MutexLock lock(log_mutex_);
  return waiting_bytes_;
}

Status ServerLog::check_fence() const {
  std::string path;
  while (true) {
    {
      MutexLock lock(log_mutex_);
      if (!failure_.ok()) return failure_;
      if (path == current_path_) break;
      path = current_path_;
    }
    if (files_.exists(path)) return {};
    // The log may have gone on to another file meanwhile, and this server archived the one before.
  }
  return {StatusCode::kFenced, path + " was taken over"};
}

LogPosition ServerLog::durable_end() const {
  MutexLock lock(log_mutex_);
  return durable_end_;
}

Status ServerLog::status() const {
  MutexLock lock(log_mutex_);
  return failure_;
}

std::size_t ServerLog::file_count() const {
  MutexLock lock(log_mutex_);
  return log_files_.size();
}

bool ServerLog::is_unneeded(const File& file) const {
  for (const auto& [region, sequence] : file.highest) {
    const auto flushed = flushed_.find(region);
    if (flushed == flushed_.end() || flushed->second < sequence) return false;
  }
  return true;
}

std::vector<std::string> ServerLog::unneeded_files() const {
  std::vector<std::string> names;
  // All but the last one, which grows.
  for (std::size_t i = 0; i + 1 < log_files_.size(); ++i) {
    if (is_unneeded(log_files_[i])) names.push_back(log_files_[i].name);
  }
  return names;
}

bool ServerLog::is_in_a_file(const std::string& region_id) const {
  return std::ranges::any_of(log_files_,
                             [&](const File& file) { return file.highest.contains(region_id); });
}

void ServerLog::flushed(const std::string& region_id, std::uint64_t sequence) {
  MutexLock lock(log_mutex_);
  if (!is_in_a_file(region_id)) return;
  std::uint64_t& highest = flushed_[region_id];
  highest = std::max(highest, sequence);
  if (archiving_ || unneeded_files().empty()) return;
  archiving_ = true;
  work_.run([this] { archive_unneeded(); });
}

void ServerLog::archive_unneeded() {
  std::vector<std::string> names;
  {
    MutexLock lock(log_mutex_);
    archiving_ = false;
    names = unneeded_files();
  }
  for (const std::string& name : names) {
    // A failure leaves the file where it is: the next flush tries again.
    const Status moved =
        files_.rename(layout_.wals(server_) + "/" + name, layout_.old_wal(server_, name));
    if (!moved.ok()) continue;
    MutexLock lock(log_mutex_);
    std::erase_if(log_files_, [&](const File& file) { return file.name == name; });
  }
  MutexLock lock(log_mutex_);
  for (auto region = flushed_.begin(); region != flushed_.end();)
    region = is_in_a_file(region->first) ? std::next(region) : flushed_.erase(region);
}

std::vector<std::string> ServerLog::regions_to_flush(std::size_t files_max) const {
  MutexLock lock(log_mutex_);
  std::vector<std::string> regions;
  for (std::size_t i = 0; i + std::max<std::size_t>(files_max, 1) < log_files_.size(); ++i) {
    for (const auto& [region, sequence] : log_files_[i].highest) {
      const auto flushed = flushed_.find(region);
      if (flushed == flushed_.end() || flushed->second < sequence) regions.push_back(region);
    }
  }
  std::ranges::sort(regions);
  regions.erase(std::unique(regions.begin(), regions.end()), regions.end());
  return regions;
}

}  // namespace pv2::cluster
