// SPDX-License-Identifier: Apache-2.0
//
// The index of a segment. Keys and values are views into the segment's bytes, which never move.

#include "log/segment.h"

#include <cstring>
#include <utility>

#include "pv2/base/assert.h"

namespace pv2 {

Segment::Segment(SegmentNumber number, std::size_t capacity, SegmentMemory::Block memory)
    : number_(number), capacity_(capacity), bytes_(std::move(memory)) {}

Segment::Segment(SegmentNumber number, std::string_view bytes, CommitSequence last)
    : Segment(number, bytes.size()) {
  std::memcpy(bytes_.get(), bytes.data(), bytes.size());
  set_durable(bytes.size(), last);
}

void Segment::set_durable(std::size_t bytes, CommitSequence last) noexcept {
  PV2_ASSERT(
      durable_.load(std::memory_order_relaxed) < bytes && bytes <= capacity_ && this->last() < last,
      "a segment grows by whole frames");
  last_.store(last.value, std::memory_order_relaxed);
  durable_.store(bytes, std::memory_order_release);
}

// The checksum is looked at again: a bit that has flipped in memory since the frame was written
// must not reach the database. The rows of the host have no checksum of their own.
bool Segment::index_next() {
  const auto frame = read_frame({bytes_.get(), durable_.load(std::memory_order_acquire)}, indexed_);
  if (!frame) return false;
  const bool good = frame->for_each_batch([this](CommitSequence sequence, std::string_view batch) {
    RowBatch::EncodedRow row;
    while (RowBatch::take_row(batch, row)) apply(row, sequence);
    return batch.empty();
  });
  indexed_ += frame->bytes();
  return good;
}

// Relaxed: index_next() looks again before it reads the bytes.
bool Segment::index_some(std::size_t bytes_max) {
  const std::size_t from = indexed_;
  while (indexed_ != durable_.load(std::memory_order_relaxed)) {
    if (indexed_ - from >= bytes_max) return true;
    const bool good = index_next();
    PV2_ASSERT(good, "a frame of this process is well-formed");
  }
  return false;
}

bool Segment::index_checked() {
  while (indexed_ != durable_.load(std::memory_order_relaxed)) {
    if (!index_next()) return false;
  }
  return true;
}

void Segment::apply(const RowBatch::EncodedRow& row, CommitSequence sequence) {
  const auto [at, is_new] = index_.try_emplace(SegmentKey(row.full_key));
  Entry& entry = at->second;
  if (is_new) {
    entry.born_here = row.operation == RowOperation::kInsert;
    keys_.add(row.full_key);
  }
  if (row.operation == RowOperation::kDelete && entry.born_here) {
    index_.erase(at);
    return;
  }
  entry.deleted = row.operation == RowOperation::kDelete;
  entry.value = row.value.data();
  entry.value_bytes = static_cast<std::uint32_t>(row.value.size());
  entry.sequence = sequence;
}

std::optional<SegmentRow> Segment::find(std::string_view full_key) const {
  const auto at = index_.find(SegmentKey(full_key));
  if (at == index_.end()) return std::nullopt;
  return at->second.row();
}

void Segment::adopt(std::string_view full_key) {
  const auto at = index_.find(SegmentKey(full_key));
  PV2_ASSERT(at != index_.end(), "a row that older segments have does not vanish from this one");
  if (at->second.deleted) {
    index_.erase(at);
  } else {
    at->second.born_here = true;
  }
}

void Segment::forget_births() noexcept {
  for (auto& [key, entry] : index_) entry.born_here = false;
}

void Segment::collect(std::string_view prefix, std::vector<std::string_view>& keys) {
  keys_.collect(prefix, keys);
}

}  // namespace pv2
