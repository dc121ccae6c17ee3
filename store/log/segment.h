// SPDX-License-Identifier: Apache-2.0
//
// Segment: one segment of the step log in memory, with the rows that it holds. The bytes are those
// of its file; the index says where in them the newest value of each row is. The index is made when
// somebody asks for a row or the segment is checkpointed, so that a commit does not wait for it.
//
// What a row is in this segment: a value; deleted, if an older segment or the database may have it;
// or nothing, if it was inserted and deleted here, and so never existed for anybody else.

#pragma once

#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "log/segment_key.h"
#include "log/segment_memory.h"
#include "log/sorted_runs.h"
#include "log/unit_frame.h"
#include "pv2/store/commit_request.h"

namespace pv2 {

/// A row of a segment: its newest value, or that it is deleted. The view is valid as long as the
/// segment.
struct SegmentRow {
  std::string_view value;
  CommitSequence sequence;  ///< Of the batch that wrote it.
  bool deleted = false;
  bool born_here = false;  ///< The segment inserted it: nothing older has the row.
};

/// The bytes have one writer, which adds frames behind those that are durable, and then calls
/// set_durable(). It takes no mutex, so it waits for no reader. The index is guarded by the Overlay
/// that the segment is in. A row is there once its frame is in the index.
class Segment {
 public:
  /// Empty, with room for `capacity` bytes, which are `memory`.
  Segment(SegmentNumber number, std::size_t capacity, SegmentMemory::Block memory);
  /// The same, with memory of its own.
  Segment(SegmentNumber number, std::size_t capacity)
      : Segment(number, capacity, SegmentMemory::take_once(capacity)) {}
  /// As it was read, `bytes` of whole frames, all durable.
  Segment(SegmentNumber number, std::string_view bytes, CommitSequence last);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  [[nodiscard]] SegmentNumber number() const noexcept { return number_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] char* data() noexcept { return bytes_.get(); }

  /// Frames up to `bytes`, whose last commit is `last`, are durable from now on: index_some() sees
  /// them. Called by the writer.
  void set_durable(std::size_t bytes, CommitSequence last) noexcept;
  /// The last commit that is durable in it; 0: none. At least that of every row in the index.
  [[nodiscard]] CommitSequence last() const noexcept {
    return {last_.load(std::memory_order_relaxed)};
  }

  /// Adds the next durable frames to the index, `bytes_max` bytes or one frame at least. Returns
  /// whether any are left. Defined for frames with well-formed batches.
  bool index_some(std::size_t bytes_max);
  /// Whether every frame is well-formed, which is for frames that were read; then all are indexed.
  [[nodiscard]] bool index_checked();

  /// The same for the order of the keys that are in the index.
  bool sort_some() { return keys_.sort_some(); }

  /// The row as of the last frame in the index; nullopt: the segment knows nothing of it.
  [[nodiscard]] std::optional<SegmentRow> find(std::string_view full_key) const;
  /// Adds the keys that begin with `prefix` to `keys`: those of rows that it knows, and possibly of
  /// some that it does not, in no order, possibly repeated.
  void collect(std::string_view prefix, std::vector<std::string_view>& keys);
  /// The segment before this one has inserted the row, and was removed without writing it into the
  /// database, because this segment knows the row too: so nothing older has it.
  void adopt(std::string_view full_key);
  /// The database may have its rows already, also those that it inserts.
  void forget_births() noexcept;
  /// Calls visit(full key, row) for each row of an index that is complete, in no order.
  template <class Visitor>
  void for_each_row(Visitor&& visit) const {
    for (const auto& [key, entry] : index_) {
      visit(RowBatch::key_before(entry.value, key.size()), entry.row());
    }
  }

 private:
  // 24 bytes beside the 24 of the key, as there may be a million of them.
  struct Entry {
    const char* value = nullptr;
    std::uint32_t value_bytes = 0;
    bool deleted = false;
    bool born_here = false;
    CommitSequence sequence;
    [[nodiscard]] SegmentRow row() const noexcept {
      return {{value, value_bytes}, sequence, deleted, born_here};
    }
  };
  bool index_next();
  void apply(const RowBatch::EncodedRow& row, CommitSequence sequence);

  const SegmentNumber number_;
  const std::size_t capacity_;
  const SegmentMemory::Block bytes_;
  // The writer stores last_ and then, with release, durable_. Whoever adds frames to the index
  // loads durable_ with acquire, and so sees the bytes, and a last_ that is no older.
  std::atomic<std::size_t> durable_ = 0;
  std::atomic<std::uint64_t> last_ = 0;
  std::size_t indexed_ = 0;
  boost::unordered_flat_map<SegmentKey, Entry, SegmentKey::Hash> index_;
  SortedRuns keys_;
};

}  // namespace pv2
