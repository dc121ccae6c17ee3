// SPDX-License-Identifier: Apache-2.0
//
// Writing and reading one log file.

#include "storage/write_ahead_log.h"

#include <fmt/core.h>
#include <pv2/base/fields.h>
#include <pv2/base/frame.h>
#include <pv2/base/hash128.h>

#include <cstring>
#include <optional>
#include <utility>

namespace pv2::cluster {
namespace {

constexpr std::size_t kPlaceBytes = 24;

std::uint64_t hash_of_name(std::string_view name) { return hash128(name).first; }

// One frame of a log, with the place that it says it has.
struct WalFrame {
  std::uint64_t synced = 0;
  std::string_view entry;
  std::size_t size = 0;
};

// The frame at `offset` of the log, of which `log` has the bytes from `base` on; no value when the
// bytes there are no frame of this log.
std::optional<WalFrame> frame_at(std::string_view log, std::uint64_t base, std::uint64_t offset,
                                 std::uint64_t name) {
  std::string_view input = log.substr(offset - base);
  if (input.size() < kFrameHeaderBytes + kPlaceBytes) return std::nullopt;
  std::uint64_t place[3];
  std::memcpy(place, input.data() + kFrameHeaderBytes, sizeof place);
  // Compared first, so that a search at every offset computes hardly any checksum.
  if (place[0] != name || place[1] != offset) return std::nullopt;
  const std::optional<std::string_view> bytes = read_frame(input);
  if (!bytes || bytes->size() < kPlaceBytes) return std::nullopt;
  return WalFrame{place[2], bytes->substr(kPlaceBytes), kFrameHeaderBytes + bytes->size()};
}

// Whether a frame after `end` says that the bytes at `end` were synced.
bool was_synced(std::string_view log, std::uint64_t base, std::uint64_t end, std::uint64_t name) {
  for (std::uint64_t offset = end + 1; offset < base + log.size(); ++offset) {
    const std::optional<WalFrame> later = frame_at(log, base, offset, name);
    if (later && later->synced > end) return true;
  }
  return false;
}

}  // namespace

WalWriter::WalWriter(const FileTree& files, std::string path, std::string_view name,
                     std::unique_ptr<leveldb::WritableFile> file)
    : files_(files),
      path_(std::move(path)),
      name_hash_(hash_of_name(name)),
      file_(std::move(file)) {}

Result<std::unique_ptr<WalWriter>> WalWriter::create(const FileTree& files, std::string path,
                                                     std::string_view name) {
  leveldb::WritableFile* opened = nullptr;
  Status bad = translate_leveldb(files.env().NewWritableFile(path, &opened), "making " + path);
  std::unique_ptr<leveldb::WritableFile> file(opened);
  // The name must be durable before an entry is acknowledged.
  if (bad.ok()) bad = files.sync_directory(parent_directory(path));
  if (!bad.ok()) return bad;
  return std::unique_ptr<WalWriter>(new WalWriter(files, std::move(path), name, std::move(file)));
}

Status WalWriter::append(WalEntry& entry) {
  std::string bytes;
  FrameWriter frame(bytes);
  append_fixed64(bytes, name_hash_);
  append_fixed64(bytes, size_);
  append_fixed64(bytes, synced_);
  encode_fields(entry, FieldSelection::kAll, bytes);
  frame.finish();
  Status bad = translate_leveldb(file_->Append(leveldb::Slice(bytes.data(), bytes.size())),
                                 "appending to " + path_);
  if (bad.ok()) size_ += bytes.size();
  return bad;
}

Status WalWriter::sync() {
  Status bad = translate_leveldb(file_->Sync(), "syncing " + path_);
  if (!bad.ok()) return bad;
  synced_ = size_;
  return check_fence();
}

Status WalWriter::check_fence() const {
  if (files_.exists(path_)) return {};
  return {StatusCode::kFenced, path_ + " was taken over"};
}

Status read_wal(std::string_view bytes, std::string_view name,
                const std::function<Status(WalEntry&)>& visit) {
  const std::uint64_t hash = hash_of_name(name);
  std::size_t offset = 0;
  while (offset < bytes.size()) {
    const std::optional<WalFrame> frame = frame_at(bytes, 0, offset, hash);
    if (!frame) {
      if (!was_synced(bytes, 0, offset, hash)) return {};  // a torn tail
      return {
          StatusCode::kCorruption,
          fmt::format("log {} is damaged at byte {}, before entries that are whole", name, offset)};
    }
    WalEntry entry;
    if (Status bad = decode_fields(entry, FieldSelection::kAll, frame->entry); !bad.ok())
      return bad.with_context(fmt::format("log {} at byte {}", name, offset));
    if (Status bad = visit(entry); !bad.ok()) return bad;
    offset += frame->size;
  }
  return {};
}

Result<std::uint64_t> read_wal_part(
    std::string_view bytes, std::uint64_t offset, std::string_view name,
    const std::function<bool(WalEntry&, std::uint64_t next)>& visit) {
  const std::uint64_t hash = hash_of_name(name);
  const std::uint64_t base = offset;
  while (offset < base + bytes.size()) {
    const std::optional<WalFrame> frame = frame_at(bytes, base, offset, hash);
    if (!frame) break;
    WalEntry entry;
    if (Status bad = decode_fields(entry, FieldSelection::kAll, frame->entry); !bad.ok())
      return bad.with_context(fmt::format("log {} at byte {}", name, offset));
    offset += frame->size;
    if (!visit(entry, offset)) break;
  }
  return offset;
}

bool has_synced_frame(std::string_view bytes, std::uint64_t offset, std::string_view name) {
  return was_synced(bytes, offset, offset, hash_of_name(name));
}

}  // namespace pv2::cluster
