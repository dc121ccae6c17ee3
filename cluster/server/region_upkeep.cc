// SPDX-License-Identifier: Apache-2.0
//
// Looks at all regions from time to time, and when the writes since the last look may have filled
// the memory.

#include "server/region_upkeep.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace pv2::cluster {
namespace {

// A region grows by some MiB in this time.
constexpr Duration kLookEvery = std::chrono::milliseconds(200);
// A read looks into each file, so the price of a read is about this.
constexpr std::size_t kFilesMax = 8;
// How far clocks of clients may be behind, as NonceManagerOptions::skew_max.
constexpr Duration kSkew = std::chrono::seconds(60);
// What one look forgets: about a millisecond's work.
constexpr std::size_t kNoncesPerLook = 4096;

}  // namespace

void RegionUpkeep::start() {
  context_.tasks.after(kLookEvery, [this] {
    if (context_.is_ended()) return;
    look();
    start();
  });
}

void RegionUpkeep::look() {
  for (const bool is_catalogue : {true, false}) look_at_memory(is_catalogue);
  look_at_logs();
  look_at_files();
  forget_nonces();
}

bool RegionUpkeep::admit(const RegionTable::Entry& entry, std::size_t bytes) {
  const bool is_catalogue = is_meta(entry->info.table);
  MemoryShare& share = share_of(is_catalogue);
  if (!share.is_full(bytes)) return true;
  look_at_memory(is_catalogue);
  return !share.is_beyond(bytes);
}

// One region at a time: the largest one, so that there are few files.
void RegionUpkeep::look_at_memory(bool is_catalogue) {
  RegionTable::Entry largest;
  std::size_t most = 0;
  bool is_flushing = false;
  std::size_t bytes = 0;
  for (const RegionTable::Entry& entry : table_.open_regions()) {
    if (is_meta(entry->info.table) != is_catalogue) continue;
    const std::size_t its = entry->region->memory_bytes();
    bytes += its;
    is_flushing = is_flushing || flushing_.contains(entry->info.id);
    if (its <= most || flush_pauses_.is_paused(entry->info.id, context_.tasks.now())) continue;
    most = its;
    largest = entry;
  }
  MemoryShare& share = share_of(is_catalogue);
  share.set(bytes);
  if (!share.is_full() || is_flushing || largest == nullptr) return;
  flush_in_background(largest);
}

void RegionUpkeep::look_at_logs() {
  std::vector<ServerLog*> logs;  // in the order of the regions
  for (const auto& entry : table_.open_regions()) {
    if (std::ranges::find(logs, entry->log) == logs.end()) logs.push_back(entry->log);
  }
  for (ServerLog* const log : logs) {
    for (const std::string& id : log->regions_to_flush(context_.options.logs_max)) {
      const auto entry = table_.find(id);
      if (entry != nullptr && entry->region != nullptr) flush_in_background(entry);
    }
  }
}

void RegionUpkeep::look_at_files() {
  if (is_compacting_) return;
  for (const auto& entry : table_.open_regions()) {
    if (entry->state != HostedState::kServing) continue;
    if (entry->region->file_count() <= kFilesMax && !entry->region->has_references()) continue;
    if (compaction_pauses_.is_paused(entry->info.id, context_.tasks.now())) continue;
    is_compacting_ = true;
    return compact(entry, [this, entry](const Status& status) {
      is_compacting_ = false;
      take_end(entry, "compacted", status, compaction_pauses_);
    });
  }
}

void RegionUpkeep::take_end(const RegionTable::Entry& entry, const char* what, const Status& status,
                            RegionPauses& pauses) {
  // A region that is gone leaves no pause.
  if (status.ok() || entry->state != HostedState::kServing) {
    return pauses.succeeded(entry->info.id);
  }
  pauses.failed(entry->info.id, context_.tasks.now());
  context_.say(LogLevel::kWarning,
               "region " + entry->info.id + " was not " + what + ": " + status.to_string());
}

void RegionUpkeep::forget_nonces() {
  const auto forget = [](ServerNonceManager& nonces) {
    const auto expired = nonces.expired(kNoncesPerLook);
    if (!expired.empty()) nonces.forget(expired);
  };
  const auto [users, catalogue] = nonces_.all();
  forget(users);
  forget(catalogue);
}

void RegionUpkeep::flush_in_background(const RegionTable::Entry& entry) {
  if (flush_pauses_.is_paused(entry->info.id, context_.tasks.now())) return;
  if (!flushing_.insert(entry->info.id).second) return;
  flush(entry, [this, entry](const Status& status) {
    flushing_.erase(entry->info.id);
    take_end(entry, "flushed", status, flush_pauses_);
    look_at_memory(is_meta(entry->info.table));
  });
}

void RegionUpkeep::flush(const RegionTable::Entry& entry, Done done) {
  entry->region->flush([this, entry, post = context_.tasks.poster(),
                        done = std::move(done)](const Result<std::uint64_t>& flushed) {
    post([this, entry, flushed, done] {
      if (flushed.ok()) {
        entry->log->flushed(entry->info.id, *flushed);
      }
      end_if_broken(entry);
      done(flushed.status());
    });
  });
}

void RegionUpkeep::compact(const RegionTable::Entry& entry, Done done) {
  entry->region->compact(forgotten_nonces(), [this, entry, post = context_.tasks.poster(),
                                              done = std::move(done)](const Status& status) {
    post([this, entry, status, done] {
      end_if_broken(entry);
      done(status);
    });
  });
}

void RegionUpkeep::end_if_broken(const RegionTable::Entry& entry) {
  const Status status = entry->region->status();
  // A region that was closed is not broken.
  if (status.ok() || status.code() == StatusCode::kUnavailable) return;
  context_.end(status.with_context("region " + entry->info.id));
}

CompactOptions RegionUpkeep::forgotten_nonces() const {
  const WallTime now = context_.clock.wall_now();
  // A replay forgets at 1.5 times the retention; one more half is for clocks that differ.
  return {.done_before = now - 2 * context_.options.nonce_retention,
          .expired_before = now - 2 * kSkew};
}

}  // namespace pv2::cluster
