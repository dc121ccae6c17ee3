// SPDX-License-Identifier: Apache-2.0
//
// The watermark: when it is raised, what its row takes along, and what follows when it is durable.

#include "core/procedure_ids.h"

#include <algorithm>
#include <memory>

#include "core/effects.h"
#include "core/engine_core.h"
#include "model/engine_age.h"
#include "model/requests.h"
#include "records/row_keys.h"
#include "records/watermark.h"

namespace pv2 {
namespace {

// More than the watermark itself takes in a batch.
constexpr std::size_t kWatermarkBytes = 128;

// Bytes of a row in a batch: its operation, its space and two lengths (RowBatch::encoded()).
std::size_t bytes_of(const std::string& key, const std::string& row) {
  return key.size() + row.size() + 2 + 2 * sizeof(std::uint32_t);
}

}  // namespace

void ProcedureIds::begin(ProcedureId highest) noexcept {
  has_begun_ = true;
  next_ = std::max({highest.value + 1, durable_watermark_, std::uint64_t{1}});
  first_ = next_;
  PV2_ASSERT(highest.value < next_, "the next id is above all ids that were read");
  PV2_ASSERT(next_ <= kIdsMax, "ids that were read are ones that a counter reaches");
}

std::uint64_t ProcedureIds::next_bound() const noexcept {
  return std::min(next_ + kBlock, kIdsMax);
}

Result<ProcedureId> ProcedureIds::allocate(std::size_t count) {
  if (next_ + count > kIdsMax) {
    return Status(StatusCode::kUnavailable,
                  "all procedure ids of " + store_name_ +
                      " are used up, or its id watermark is damaged; what is there goes on, and "
                      "new procedures need a new store");
  }
  if (next_ + count > durable_watermark_) {
    return Status(StatusCode::kUnavailable,
                  "no procedure id is free until " + store_name_ + " has recorded more; try again");
  }
  PV2_ASSERT(count != 0, "at least one id is asked for");
  PV2_ASSERT(has_begun_, "no id is issued before the store was loaded");
  const ProcedureId first{next_};
  PV2_ASSERT(first, "an id is not 0");
  next_ += count;
  PV2_ASSERT(next_ <= durable_watermark_, "only ids below the watermark are issued");
  return first;
}

void ProcedureIds::reserve(Effects& effects) {
  const std::uint64_t bound = next_bound();
  if (is_writing_ || next_ + kBlock / 2 < durable_watermark_ || bound == durable_watermark_) return;
  write_watermark(bound, {}, effects);
}

void ProcedureIds::write_watermark(std::uint64_t next_id, Reply<Status> reply, Effects& effects) {
  auto commit = std::make_unique<WatermarkCommit>();
  commit->next_id = next_id;
  commit->reply = std::move(reply);
  std::string row;
  encode_watermark({next_id, age_.mark()}, row);
  commit->batch.put(Space::kEngine, kWatermarkKey, row);
  RowBatch& batch = commit->batch;
  while (!rows_.empty() && batch.operations() < limits_.batch_operations) {
    const auto& [key, schema] = rows_.back();
    if (batch.bytes() + bytes_of(key, schema) > limits_.batch_bytes) break;
    batch.put(Space::kEngine, key, schema);
    rows_.pop_back();
  }
  is_writing_ = true;
  effects.commits.push_back(*commit.release());
}

Status ProcedureIds::take_along(std::string key, std::string row) {
  if (kWatermarkBytes + bytes_of(key, row) > limits_.batch_bytes) {
    return Status(StatusCode::kInvalidArgument,
                  "the row '" + key + "' has " + std::to_string(row.size()) +
                      " bytes, which is more than " + store_name_ + " takes in one batch");
  }
  rows_.emplace_back(std::move(key), std::move(row));
  return Status();
}

void ProcedureIds::written(std::uint64_t watermark) noexcept {
  durable_watermark_ = watermark;
  is_writing_ = false;
}

void WatermarkCommit::published(EngineCore& core, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  const std::unique_ptr<WatermarkCommit> owned(this);
  core.state.ids.written(next_id);
  effects.reply(std::move(reply), Status());
}

void WatermarkCommit::failed(EngineCore& /*core*/, const RequestFailure& why, Effects& effects) {
  const std::unique_ptr<WatermarkCommit> owned(this);
  effects.reply(std::move(reply), why.not_written);  // a bound that nobody has used yet
}

}  // namespace pv2
