// SPDX-License-Identifier: Apache-2.0
//
// A file that is being filled belongs to nobody else, so the disk is written without the lock.

#include "log/segment_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "pv2/base/assert.h"

namespace pv2 {
namespace {

constexpr std::size_t kGrowth = 4;
constexpr std::size_t kZerosAtOnce = std::size_t{256} << 10;

}  // namespace

SegmentPool::SegmentPool(SegmentFiles& files, DirectorySync sync, std::string directory,
                         Options options)
    : files_(files),
      sync_(std::move(sync)),
      directory_(std::move(directory)),
      options_(options),
      wanted_(std::min(options.bytes_min, options.bytes_max)) {}

bool SegmentPool::is_name(std::string_view name) noexcept {
  if (!name.starts_with(kFilePrefix)) return false;
  const std::string_view digits = name.substr(kFilePrefix.size());
  return !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
}

void SegmentPool::add(File file) {
  const std::string_view digits = std::string_view(file.name).substr(kFilePrefix.size());
  std::size_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  MutexLock lock(files_mutex_);
  highest_ = std::max(highest_, number);
  free_.push_back(std::move(file));
}

void SegmentPool::give_back(File file) {
  MutexLock lock(files_mutex_);
  --in_use_;
  free_.push_back(std::move(file));
}

std::vector<SegmentPool::File>::iterator SegmentPool::largest() {
  return std::max_element(free_.begin(), free_.end(),
                          [](const File& a, const File& b) { return a.bytes < b.bytes; });
}

std::optional<SegmentPool::File> SegmentPool::take() {
  MutexLock lock(files_mutex_);
  if (!can_take()) return std::nullopt;
  const auto at = largest();
  File file = std::move(*at);
  free_.erase(at);
  ++in_use_;
  wanted_ = std::min(wanted_ * kGrowth, options_.bytes_max);
  return file;
}

bool SegmentPool::has_free() {
  MutexLock lock(files_mutex_);
  return can_take();
}

// An earlier process may have left more files than are allowed now.
bool SegmentPool::can_take() {
  const auto at = largest();
  return in_use_ < options_.files_max && at != free_.end() && at->bytes != 0;
}

Status SegmentPool::prepare() {
  File file;
  std::size_t bytes = 0;
  bool has_another = false;
  {
    MutexLock lock(files_mutex_);
    bytes = wanted_;
    const auto at = largest();
    if (at != free_.end() && at->bytes >= bytes) return Status();
    if (at != free_.end()) {
      file = std::move(*at);
      free_.erase(at);
    } else {
      if (in_use_ >= options_.files_max) return Status();
      file.name = fmt::format("{}{}", kFilePrefix, ++highest_);
      file.is_new = true;
    }
    has_another = in_use_ != 0 || file.bytes != 0;
    ++in_use_;
  }
  Status status = fill(file, bytes, has_another);
  MutexLock lock(files_mutex_);
  --in_use_;
  free_.push_back(std::move(file));
  return status;
}

Status SegmentPool::fill(File& file, std::size_t bytes, bool keep_reserve) const {
  static const std::string zeros(kZerosAtOnce, '\0');
  const std::string path = directory_ + "/" + file.name;
  const auto said = [](const Status& status) {
    return status.with_context("making room for the log");
  };
  if (keep_reserve) {
    const auto left = files_.free_bytes(directory_);
    if (!left.ok()) return said(left.status());
    if (*left < bytes - file.bytes + kReserveBytes) {
      return said(Status(
          StatusCode::kStorageFull,
          fmt::format("the disk has {} bytes left, and {} are for commits", *left, kReserveBytes)));
    }
  }
  // A file that had a name is not made again: its name would have to be synced.
  const auto opened = file.is_new ? files_.create(path) : files_.open(path);
  Status status = opened.status();
  if (status.ok()) file.is_new = false;
  for (std::size_t at = file.bytes; status.ok() && at < bytes; at += zeros.size()) {
    status = (*opened)->write(at, std::string_view(zeros).substr(0, bytes - at));
  }
  // Zeros that did not all fit would take the space in which the database makes room for the log.
  if (!status.ok() && opened.ok()) static_cast<void>((*opened)->cut(file.bytes).ok());
  if (status.ok()) status = (*opened)->sync();
  if (status.ok() && file.bytes == 0) status = sync_(directory_);
  if (!status.ok()) return said(status);
  file.bytes = bytes;
  return status;
}

}  // namespace pv2
