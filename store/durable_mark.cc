// SPDX-License-Identifier: Apache-2.0
//
// A crash may leave half of a mark, with the other half of the one that it was to replace. That has
// a wrong checksum, so it does not count: what differs between the two is a few low bytes of the
// sequence and the checksum, and CRC-32C finds every error within four bytes.

#include "durable_mark.h"

#include <algorithm>
#include <utility>

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

Result<CommitSequence> read_marks(const LevelDbFiles& files, const std::string& path) {
  constexpr std::size_t kMarkBytes = DurableMark::kMarkBytes;
  CommitSequence highest;
  const auto bytes = files.read(path);
  if (bytes.status().code() == StatusCode::kNotFound) return highest;
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

Status replace_marks(const LevelDbFiles& files, const std::string& path, CommitSequence durable) {
  std::string marks = encode(durable);
  marks.resize(DurableMark::kMarks * DurableMark::kMarkBytes);
  return files.replace(path, marks);
}

Status DurableMark::raise(CommitSequence durable) {
  PV2_ASSERT(last_ < durable, "a mark is raised");
  last_ = durable;
  if (file_ == nullptr) {
    if (Status status = replace_marks(files_, path_, durable); !status.ok()) return status;
    auto opened = in_place_.open(path_);
    if (!opened.ok()) return opened.status();
    file_ = *std::move(opened);
    return Status();
  }
  Status status = file_->write(next_ * kMarkBytes, encode(durable));
  if (!status.ok()) return status;
  next_ = next_ + 1 == kMarks ? 1 : next_ + 1;
  return ++unsynced_ < kSyncEvery ? Status() : sync();
}

Status DurableMark::sync() {
  if (unsynced_ == 0) return Status();
  unsynced_ = 0;
  return file_->sync();
}

}  // namespace pv2
