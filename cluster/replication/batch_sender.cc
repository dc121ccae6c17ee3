// SPDX-License-Identifier: Apache-2.0
//
// First the regions of each table are looked up, then the writes go out, some at a time.

#include "replication/batch_sender.h"

#include <chrono>
#include <utility>

namespace pv2::cluster {
namespace {

// Enough to keep several servers of the other cluster busy.
constexpr std::size_t kWritesAtOnce = 8;
// A region that moves or is recovered is back by then; otherwise the batch is sent again.
constexpr Duration kWriteTimeout = std::chrono::seconds(30);

}  // namespace

void BatchSender::send(std::vector<EditGroup> groups, Done done) {
  groups_.assign(std::make_move_iterator(groups.begin()), std::make_move_iterator(groups.end()));
  writes_.clear();
  failure_ = Status();
  done_ = std::move(done);
  plan();
}

void BatchSender::stop() {
  if (failure_.ok()) failure_ = Status(StatusCode::kStopping, "nothing more is sent to the peer");
  groups_.clear();
  writes_.clear();
}

void BatchSender::plan() {
  while (!groups_.empty()) {
    const TableName table = groups_.front().table;
    if (const auto known = starts_.find(table); known != starts_.end()) {
      add_writes(std::move(groups_.front()), known->second);
      groups_.pop_front();
      continue;
    }
    return client_.regions_of(
        table, tasks_.guarded<Result<std::vector<RegionRow>>>(
                   [self = shared_from_this(), table](const Result<std::vector<RegionRow>>& rows) {
                     if (!rows.ok()) self->fail(table, rows.status());
                     if (!self->failure_.ok()) return self->go_on();
                     std::vector<std::string>& starts = self->starts_[table];
                     for (const RegionRow& row : *rows) starts.push_back(row.region.start_key);
                     self->plan();
                   }));
  }
  go_on();
}

void BatchSender::add_writes(EditGroup group, const std::vector<std::string>& starts) {
  for (std::vector<Mutation>& mutations : divide_edits(std::move(group.mutations), starts)) {
    writes_.push_back({group.table, group.origins, std::move(mutations)});
  }
}

void BatchSender::go_on() {
  while (failure_.ok() && !writes_.empty() && in_flight_ < kWritesAtOnce) {
    if (failure_ = check_(); !failure_.ok()) break;
    Write write = std::move(writes_.front());
    writes_.pop_front();
    ++in_flight_;
    client_.write(write.table, std::move(write.mutations),
                  {.timeout = kWriteTimeout, .origins = std::move(write.origins)},
                  tasks_.guarded<WriteOutcome>([self = shared_from_this(),
                                                table = write.table](const WriteOutcome& outcome) {
                    --self->in_flight_;
                    if (!outcome.ok()) self->fail(table, outcome.status);
                    self->go_on();
                  }));
  }
  // Nothing of a batch is under way when its outcome is told.
  if (in_flight_ > 0 || !done_) return;
  if (failure_.ok() && !writes_.empty()) return;
  std::exchange(done_, nullptr)(failure_);
}

void BatchSender::fail(const TableName& table, const Status& why) {
  if (failure_.ok()) failure_ = why.with_context("table " + to_string(table) + " of the peer");
  // It may have been split, or created again.
  starts_.erase(table);
}

}  // namespace pv2::cluster
