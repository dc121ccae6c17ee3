// SPDX-License-Identifier: Apache-2.0
//
// There are few segments, so each is asked in turn.

#include "log/overlay.h"

#include <algorithm>
#include <boost/sort/spreadsort/string_sort.hpp>
#include <utility>

#include "pv2/base/assert.h"

namespace pv2 {
namespace {

// A checkpoint may have more than 100 000 rows, in no order. For keys as short as the engine's,
// string_sort() takes two fifths of the time of std::sort(). It recurses once for each byte in
// which keys differ, so long keys could overflow the stack: std::sort() takes those.
void sort_by_key(std::vector<Overlay::Row>& rows) {
  constexpr std::size_t kShort = 64;
  const auto is_before = [](const Overlay::Row& a, const Overlay::Row& b) {
    return a.full_key < b.full_key;
  };
  const bool are_short = std::all_of(rows.begin(), rows.end(), [](const Overlay::Row& row) {
    return row.full_key.size() <= kShort;
  });
  if (!are_short) return std::sort(rows.begin(), rows.end(), is_before);
  boost::sort::spreadsort::string_sort(
      rows.begin(), rows.end(),
      [](const Overlay::Row& row, std::size_t at) -> unsigned char { return row.full_key[at]; },
      [](const Overlay::Row& row) { return row.full_key.size(); }, is_before);
}

// The bytes of one piece. A reader that needs the mutex waits until a piece is indexed.
constexpr std::size_t kIndexedAtOnce = std::size_t{64} << 10;

// Indexes a piece, of the oldest segment that needs it. Returns whether more is left. Others may
// get the mutex between two pieces.
bool index_some_of(const std::vector<std::shared_ptr<Segment>>& segments) {
  return std::any_of(segments.begin(), segments.end(),
                     [](const auto& segment) { return segment->index_some(kIndexedAtOnce); });
}

}  // namespace

void Overlay::add(std::shared_ptr<Segment> segment) {
  MutexLock lock(segments_mutex_);
  PV2_ASSERT(segments_.empty() || segments_.back()->number() < segment->number(),
             "segments are added in their order");
  segments_.push_back(std::move(segment));
}

std::size_t Overlay::size() const {
  MutexLock lock(segments_mutex_);
  return segments_.size();
}

void Overlay::index_all() noexcept {
  std::vector<std::shared_ptr<Segment>> all;
  {
    MutexLock lock(segments_mutex_);
    all = segments_;
  }
  index_these(all);
}

void Overlay::index_these(const std::vector<std::shared_ptr<Segment>>& segments) {
  for (bool more = true; more;) {
    MutexLock lock(segments_mutex_);
    more = index_some_of(segments);
  }
}

std::optional<Overlay::Found> Overlay::get(std::string_view full_key) noexcept {
  for (;;) {
    MutexLock lock(segments_mutex_);
    if (index_some_of(segments_)) continue;
    for (auto segment = segments_.rbegin(); segment != segments_.rend(); ++segment) {
      const auto row = (*segment)->find(full_key);
      if (row) return Found{std::string(row->value), row->sequence, row->deleted};
    }
    return std::nullopt;
  }
}

// Sorts a piece of the keys, as index_some_of() indexes one.
bool Overlay::sort_some() {
  return std::any_of(segments_.begin(), segments_.end(),
                     [](const auto& segment) { return segment->sort_some(); });
}

Overlay::Snapshot Overlay::collect(std::string_view prefix,
                                   const std::function<void()>& and_then) noexcept {
  for (;;) {
    MutexLock lock(segments_mutex_);
    if (index_some_of(segments_) || sort_some()) continue;
    Snapshot snapshot = collect_indexed(prefix);
    and_then();
    return snapshot;
  }
}

Overlay::Snapshot Overlay::collect_indexed(std::string_view prefix) {
  Snapshot snapshot;
  std::vector<std::string_view> keys;
  for (const auto& segment : segments_) segment->collect(prefix, keys);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  snapshot.rows.reserve(keys.size());
  for (const std::string_view key : keys) {
    for (auto segment = segments_.rbegin(); segment != segments_.rend(); ++segment) {
      const auto row = (*segment)->find(key);
      if (!row) continue;
      snapshot.rows.push_back({key, *row});
      break;
    }
  }
  if (!snapshot.rows.empty()) snapshot.segments.assign(segments_.begin(), segments_.end());
  return snapshot;
}

// A row that is deleted, and was not born here, is in the database, and has to be deleted there:
// also if the next segment has it again, because that one takes "inserted here, and deleted" for
// "was never there".
Overlay::Checkpoint Overlay::begin_checkpoint() {
  Checkpoint checkpoint;
  std::vector<std::shared_ptr<Segment>> concerned;
  {
    MutexLock lock(segments_mutex_);
    const auto count = std::min<std::ptrdiff_t>(2, std::ssize(segments_));
    concerned.assign(segments_.begin(), segments_.begin() + count);
  }
  index_these(concerned);
  checkpoint.segments = {concerned.front()};
  if (concerned.size() > 1) checkpoint.next = concerned.back();
  const Segment& oldest = *concerned.front();
  const Segment* const next = checkpoint.next.get();

  std::vector<Row> rows;
  oldest.for_each_row([&](std::string_view key, const SegmentRow& row) {
    rows.push_back({key, row});
  });
  for (auto row = rows.begin(); next != nullptr && row != rows.end();) {
    MutexLock lock(segments_mutex_);
    const auto stop = row + std::min<std::ptrdiff_t>(kRowsAtOnce, rows.end() - row);
    for (; row != stop; ++row) {
      const bool is_deletion = row->row.deleted;
      if (is_deletion || !next->find(row->full_key)) {
        checkpoint.rows.push_back(*row);
        continue;
      }
      checkpoint.needs = next->last();
      if (row->row.born_here) checkpoint.replaced.push_back(row->full_key);
    }
  }
  if (next == nullptr) checkpoint.rows = std::move(rows);
  sort_by_key(checkpoint.rows);
  checkpoint.segment = oldest.number();
  checkpoint.last = oldest.last();
  checkpoint.needs = std::max(checkpoint.needs, checkpoint.last);
  return checkpoint;
}

// The segments do not change: they were read whole, and only this thread makes checkpoints.
Overlay::Checkpoint Overlay::begin_take_over(std::size_t bytes_max) {
  Checkpoint checkpoint;
  auto& segments = checkpoint.segments;
  {
    MutexLock lock(segments_mutex_);
    std::size_t bytes = 0;
    for (const auto& segment : segments_) {
      bytes += segment->capacity();
      if (!segments.empty() && bytes > bytes_max) break;
      segments.push_back(segment);
    }
  }
  index_these(segments);
  for (auto at = segments.rbegin(); at != segments.rend(); ++at) {
    (*at)->for_each_row([&](std::string_view key, const SegmentRow& row) {
      const bool is_replaced = std::any_of(
          segments.rbegin(), at, [&](const auto& newer) { return newer->find(key).has_value(); });
      if (!is_replaced) checkpoint.rows.push_back({key, row});
    });
  }
  sort_by_key(checkpoint.rows);
  checkpoint.segment = segments.back()->number();
  checkpoint.last = checkpoint.needs = segments.back()->last();
  return checkpoint;
}

// The segments go first. If the next segment forgot a row before that, a reader would find the row
// in a segment of the checkpoint.
void Overlay::end_checkpoint(const Checkpoint& checkpoint) {
  {
    MutexLock lock(segments_mutex_);
    const auto count = std::ssize(checkpoint.segments);
    PV2_ASSERT(
        count <= std::ssize(segments_) &&
            std::equal(checkpoint.segments.begin(), checkpoint.segments.end(), segments_.begin()),
        "the oldest segments are removed");
    segments_.erase(segments_.begin(), segments_.begin() + count);
  }
  const auto& keys = checkpoint.replaced;
  for (std::size_t at = 0; at != keys.size();) {
    MutexLock lock(segments_mutex_);
    const std::size_t stop = at + std::min<std::size_t>(kRowsAtOnce, keys.size() - at);
    for (; at != stop; ++at) checkpoint.next->adopt(keys[at]);
  }
}

}  // namespace pv2
