// SPDX-License-Identifier: Apache-2.0
//
// ProcedureIds: issues the ids of procedures. An id is issued only when it is below the durable
// watermark, so no later life issues it again, whatever a crash does. One watermark covers a block
// of ids; a crash skips at most one block.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/ids.h>
#include <pv2/base/status.h>
#include <pv2/store/procedure_store.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/reply.h"

namespace pv2 {

class EngineAge;
struct Effects;

/// Guarded by the state mutex.
class ProcedureIds {
 public:
  /// The next block is reserved when half of this one is left, which is far more than are issued
  /// during one sync.
  static constexpr std::uint64_t kBlock = 1'000'000;

  /// `store_name` is for messages; `limits` are those of the store. The watermark's row carries the
  /// mark of `age` too.
  ProcedureIds(std::string store_name, const StoreLimits& limits, const EngineAge& age)
      : store_name_(std::move(store_name)), limits_(limits), age_(age) {}

  /// What the store's watermark says. Called once at most, before begin().
  void load_watermark(std::uint64_t watermark) noexcept { durable_watermark_ = watermark; }
  /// The whole store was read: ids go on above `highest` and the watermark.
  void begin(ProcedureId highest) noexcept;
  [[nodiscard]] bool has_begun() const noexcept { return has_begun_; }
  /// Whether a watermark of this life is durable that covers ids. Until then open() may still fail,
  /// and next() is not to be written.
  [[nodiscard]] bool has_bound() const noexcept {
    return has_begun_ && durable_watermark_ > first_;
  }
  /// The watermark to be written next: it covers a block of ids, or as many as there are.
  [[nodiscard]] std::uint64_t next_bound() const noexcept;

  /// Takes `count` consecutive ids and returns the first. kUnavailable while the durable watermark
  /// does not cover them.
  Result<ProcedureId> allocate(std::size_t count);
  /// Raises the watermark when less than half a block of ids is left.
  void reserve(Effects& effects);
  /// Queues a watermark. Neither this life nor a later one issues an id at or above it before a
  /// higher one is durable.
  void write_watermark(std::uint64_t next_id, Reply<Status> reply, Effects& effects);
  /// The watermark is durable.
  void written(std::uint64_t watermark) noexcept;
  /// The next watermarks take along this row of Space::kEngine (schema_rows.h), each as many rows
  /// as fit into its batch. kInvalidArgument: the row fits into none.
  Status take_along(std::string key, std::string row);
  /// Whether rows are left that the last watermark did not take along.
  [[nodiscard]] bool has_more_to_take_along() const noexcept { return !rows_.empty(); }

  /// Whether `id` was issued in this life or an earlier one.
  [[nodiscard]] bool was_issued(ProcedureId id) const noexcept { return id && id.value < next_; }
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  /// next() when the store was loaded.
  [[nodiscard]] std::uint64_t first() const noexcept { return first_; }
  [[nodiscard]] std::uint64_t durable_watermark() const noexcept { return durable_watermark_; }
  /// Whether a watermark is on the way.
  [[nodiscard]] bool is_writing() const noexcept { return is_writing_; }

 private:
  const std::string store_name_;
  const StoreLimits limits_;
  const EngineAge& age_;
  bool has_begun_ = false;
  bool is_writing_ = false;
  std::uint64_t next_ = 1;
  std::uint64_t first_ = 1;
  std::uint64_t durable_watermark_ = 0;  // only ids below it are issued
  std::vector<std::pair<std::string, std::string>> rows_;
};

}  // namespace pv2
