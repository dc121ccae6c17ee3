// SPDX-License-Identifier: Apache-2.0
//
// Writes of a region. The entry is given to the log under the write mutex: entries of a region are
// in the log in the order of their sequences, so the log's prefix that survives a crash has no
// write without those that it was computed from.

#include <pv2/base/assert.h>
#include <pv2/base/fields.h>

#include <algorithm>
#include <utility>

#include "storage/region.h"
#include "storage/write_computation.h"

namespace pv2::cluster {

Status Region::check_write(const RegionWrite& write) const {
  if (Status bad = check_mutations(write.mutations); !bad.ok()) return bad;
  if (Status bad = check_origins(write.mutations, write.origins); !bad.ok()) return bad;
  for (const Mutation& mutation : write.mutations) {
    if (Status bad = check_row(mutation.row); !bad.ok()) return bad;
    if (mutation.kind == MutationKind::kDeleteRow) continue;
    if (Status bad = check_families({mutation.family}); !bad.ok()) return bad;
  }
  return {};
}

void Region::write(RegionWrite write, EntryLog& log, WriteDone done) {
  Status bad = check_write(write);
  if (bad.ok()) {
    MutexLock order(write_mutex_);
    bad = begin_write(write, log, done);
  }
  if (!bad.ok()) done(std::move(bad));
}

Status Region::begin_write(RegionWrite& write, EntryLog& log, WriteDone& done) {
  View all;
  {
    MutexLock lock(state_mutex_);
    all = view();
  }
  WriteComputation computation([&all] { return cursor_over(all); },
                               write.origins.empty() ? std::string() : write.origins.back());
  for (const Mutation& mutation : write.mutations) {
    if (Status bad = computation.apply(mutation); !bad.ok()) return bad;
  }

  WalEntry entry{.region_id = info_.id,
                 .table = info_.table,
                 .write_time = write.now,
                 .cells = computation.cells(),
                 .opening = options_.opening,
                 .origins = std::move(write.origins)};
  WriteResult result{.values = computation.take_values()};
  PV2_ASSERT(result.values.size() == write.mutations.size(), "each mutation has a value");
  {
    MutexLock lock(state_mutex_);
    if (Status bad = refusal(); !bad.ok()) return bad;
    if (phase_ != Phase::kOpen)
      return {StatusCode::kUnavailable, "region " + info_.id + " is closing"};
    result.sequence = entry.sequence = ++assigned_;
    if (write.nonce) {
      NonceCell nonce{.nonce = write.nonce->nonce,
                      .fingerprint = write.nonce->fingerprint,
                      .expires_at = write.nonce->expires_at,
                      .done_at = write.now,
                      .row = write.mutations.front().row};
      encode_fields(result, FieldSelection::kAll, nonce.result);
      entry.cells.push_back(encode_nonce_cell(nonce));
    }
    // Before it is durable: the next write is computed from it. Readers do not see it yet.
    active_->add(entry.cells, entry.sequence);
  }
  log.append(std::move(entry), [self = shared_from_this(), result = std::move(result),
                                done = std::move(done)](Status status) {
    self->committed(result.sequence, status);
    if (status.ok()) {
      done(result);
    } else {
      done(std::move(status));
    }
  });
  return {};
}

void Region::committed(std::uint64_t sequence, const Status& status) {
  std::vector<std::function<void()>> ready;
  {
    MutexLock lock(state_mutex_);
    if (!status.ok()) {
      if (failure_.ok()) failure_ = status;
    } else {
      PV2_ASSERT(sequence > visible_, "writes become visible in order");
      PV2_ASSERT(sequence <= assigned_, "a write was begun before it is visible");
      visible_ = sequence;
    }
    while (!waiting_.empty() && (waiting_.front().first <= visible_ || !failure_.ok())) {
      ready.push_back(std::move(waiting_.front().second));
      waiting_.pop_front();
    }
    schedule();  // a flush may wait for this write
  }
  for (const auto& done : ready) done();
}

void Region::when_visible(std::function<void()> done) {
  {
    MutexLock lock(state_mutex_);
    if (failure_.ok() && visible_ < assigned_) {
      waiting_.emplace_back(assigned_, std::move(done));
      return;
    }
  }
  done();
}

}  // namespace pv2::cluster
