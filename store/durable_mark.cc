// SPDX-License-Identifier: Apache-2.0
//
// Marks are appended, so that no mark is ever half overwritten.

#include "durable_mark.h"

#include <algorithm>

#include "little_endian.h"
#include "pv2/base/assert.h"
#include "pv2/base/crc32c.h"

namespace pv2 {
namespace {

std::string encode(CommitSequence sequence) {
  std::string mark;
  append_fixed64(mark, sequence.value);
  append_fixed32(mark, crc32c(mark));
  PV2_ASSERT(mark.size() == DurableMark::kMarkBytes, "a mark has its size");
  return mark;
}

}  // namespace

Result<CommitSequence> DurableMark::read() const {
  CommitSequence highest;
  if (!files_.env().FileExists(path_)) return highest;
  const auto bytes = files_.read(path_);
  if (!bytes.ok()) return bytes.status();
  for (std::size_t at = 0; at + kMarkBytes <= bytes->size(); at += kMarkBytes) {
    const std::string_view mark = std::string_view(*bytes).substr(at, kMarkBytes);
    const bool good = crc32c(mark.substr(0, 8)) == read_fixed32(mark.data() + 8);
    if (good) highest.value = std::max(highest.value, read_fixed64(mark.data()));
    if (!good && at == 0) {
      return Status(StatusCode::kCorruption, "its first mark has a wrong checksum");
    }
  }
  if (bytes->size() < kMarkBytes) return Status(StatusCode::kCorruption, "it is cut short");
  return highest;
}

Status DurableMark::raise(CommitSequence durable) {
  PV2_ASSERT(last_ < durable, "a mark is raised");
  last_ = durable;
  if (file_ == nullptr || bytes_ + kMarkBytes > kFileBytes) {
    file_.reset();
    Status status = reset(durable);
    if (!status.ok()) return status;
    leveldb::WritableFile* opened = nullptr;
    const leveldb::Status appends = files_.env().NewAppendableFile(path_, &opened);
    file_.reset(opened);
    bytes_ = kMarkBytes;
    return check(appends, "opening");
  }
  leveldb::Status status = file_->Append(encode(durable));
  if (status.ok()) status = file_->Flush();
  bytes_ += kMarkBytes;
  if (!status.ok()) return check(status, "writing");
  return ++unsynced_ < kSyncEvery ? Status() : sync();
}

Status DurableMark::sync() {
  if (file_ == nullptr || unsynced_ == 0) return Status();
  unsynced_ = 0;
  return check(file_->Sync(), "syncing");
}

Status DurableMark::reset(CommitSequence durable) {
  unsynced_ = 0;
  return files_.replace(path_, encode(durable));
}

Status DurableMark::check(const leveldb::Status& status, std::string_view act) const {
  return status.ok() ? Status() : translate(status).with_context(std::string(act) + " " + path_);
}

}  // namespace pv2
