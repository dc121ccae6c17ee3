// SPDX-License-Identifier: Apache-2.0
//
// Overlay: the rows of all segments that are not in the database yet, newest segment first. A read
// looks here, and in the database only for what is not here.
//
// Invariant: a row as of the last durable commit is the one of the newest segment that knows it, or
// if none does, the one in the database. A segment leaves the overlay when the database has its
// rows, so the invariant holds at every moment.
//
// The newest segment grows without the mutex. A reader first adds to the indexes what is durable by
// then, and looks in the indexes only, in the same section. Indexes grow under the mutex, in the
// order of the commits: that of a segment only when those of all older ones are complete. So what a
// reader sees is of one moment, and no older than the commits that were durable when it began.
//
// How it fails: without memory an index would go on behind a row that it does not have, and a later
// read would miss that row. So what adds to an index is noexcept, and ends the process.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "log/segment.h"
#include "pv2/base/mutex.h"

namespace pv2 {

/// Thread-safe, except that one thread at a time makes checkpoints.
class Overlay {
 public:
  /// What a read finds here. A value.
  struct Found {
    std::string value;
    CommitSequence sequence;
    bool deleted = false;
  };
  /// A row in a Snapshot. The key is the full one.
  struct Row {
    std::string_view full_key;
    SegmentRow row;
  };
  /// A checkpoint of the oldest segments: of one, unless the log is taken over. A value.
  struct Checkpoint {
    SegmentNumber segment;  ///< The newest of them.
    CommitSequence last;    ///< Its last commit.
    /// The last commit of the next segment, if rows of this one are not written because that one
    /// replaces them: without it they would be missing. Otherwise `last`.
    CommitSequence needs;
    std::vector<Row> rows;  ///< In the order of their keys.
   private:
    friend class Overlay;
    std::vector<std::string_view> replaced;  // rows that it has inserted, and the next one has
    std::vector<std::shared_ptr<Segment>> segments;  // in which the views lie, oldest first
    std::shared_ptr<Segment> next;                   // null: it replaces nothing
  };
  /// Rows in the order of their keys, each once. Keeps the segments that they lie in.
  struct Snapshot {
    std::vector<Row> rows;
    std::vector<std::shared_ptr<const Segment>> segments;
  };

  /// Adds a segment that is newer than all others.
  void add(std::shared_ptr<Segment> segment) PV2_EXCLUDES(segments_mutex_);
  /// Indexes what is durable now, so that the next read need not.
  void index_all() noexcept PV2_EXCLUDES(segments_mutex_);

  /// nullopt: the database is to be asked.
  [[nodiscard]] std::optional<Found> get(std::string_view full_key) noexcept
      PV2_EXCLUDES(segments_mutex_);
  /// The rows whose full keys begin with `prefix`, deleted ones too. `and_then` is called in the
  /// same instant: what it takes from the database fits to the rows.
  [[nodiscard]] Snapshot collect(std::string_view prefix,
                                 const std::function<void()>& and_then) noexcept
      PV2_EXCLUDES(segments_mutex_);
  /// Collects what the database needs before the oldest segment can be removed: the rows of that
  /// segment, except those that the next segment replaces. The oldest segment does not grow any
  /// more. This process has written the next segment, so that one is durable.
  [[nodiscard]] Checkpoint begin_checkpoint() PV2_EXCLUDES(segments_mutex_);
  /// The same for a log that this process has read. Perhaps no sync has brought it to the disk, so
  /// no row is left out. The checkpoint has the oldest segments that together have `bytes_max`
  /// bytes, and at least one.
  [[nodiscard]] Checkpoint begin_take_over(std::size_t bytes_max) PV2_EXCLUDES(segments_mutex_);
  /// Removes the segments of a checkpoint. Called when the database has its rows.
  void end_checkpoint(const Checkpoint& checkpoint) PV2_EXCLUDES(segments_mutex_);
  /// How many segments there are.
  [[nodiscard]] std::size_t size() const PV2_EXCLUDES(segments_mutex_);
  [[nodiscard]] bool empty() const PV2_EXCLUDES(segments_mutex_) { return size() == 0; }

 private:
  // How many rows are looked at without letting a reader in.
  static constexpr std::size_t kRowsAtOnce = 1'000;

  Snapshot collect_indexed(std::string_view prefix) PV2_REQUIRES(segments_mutex_);
  void index_these(const std::vector<std::shared_ptr<Segment>>& segments)
      PV2_EXCLUDES(segments_mutex_);
  bool sort_some() PV2_REQUIRES(segments_mutex_);

  mutable Mutex segments_mutex_;
  std::vector<std::shared_ptr<Segment>> segments_ PV2_GUARDED_BY(segments_mutex_);  // oldest first
};

}  // namespace pv2
