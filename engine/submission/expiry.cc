// SPDX-License-Identifier: Apache-2.0
//
// Read look() first: it asks the age of the store, finds the results that are too old, and has them
// acknowledged. A look ends with the answer to its last acknowledgement.

#include "submission/expiry.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "core/effects.h"
#include "core/publisher.h"
#include "core/state_lock.h"
#include "model/names.h"
#include "pv2/engine/executor_options.h"
#include "records/kept_result.h"
#include "records/row_keys.h"
#include "submission/results.h"

namespace pv2 {
namespace {

// Results in one batch: a millisecond or two of work for a pool thread, and as much for the
// committer. A larger batch is no faster, and delays the commits behind it.
constexpr std::size_t kAtOnce = 128;
// Results that one search finds; they take 200 KB. A search has to read past the rows that earlier
// searches had deleted, so it should find many.
constexpr std::size_t kFoundAtOnce = 32 * kAtOnce;
// Between two looks when nothing is too old. Once a minute is often enough for a retention of half
// an hour or more.
constexpr Duration kPause = std::chrono::minutes(1);
// A crash makes results seem younger by at most this much.
constexpr Duration kMarkEvery = std::chrono::minutes(10);

}  // namespace

std::optional<SteadyTime> Expiry::next_due() {
  StateLock lock(core_);
  if (looking_) return std::nullopt;  // the end of the look sets the time of the next one
  return next_look_;
}

std::size_t Expiry::fire(SteadyTime now) {
  {
    StateLock lock(core_);
    if (looking_ || !core_.unavailable().ok()) return 0;
    // With a manual clock there is a look after each move of the clock.
    const bool moved = core_.clock.is_manual() && now != last_look_;
    if (now < next_look_ && !moved) return 0;
    looking_ = true;
    last_look_ = now;
  }
  core_.pool->post_blocking([this] { look(); });  // it reads the store
  return 1;
}

void Expiry::look() {
  core_.age.look();
  auto found = find();
  failed_ = !found.ok();
  if (!found.ok()) {
    complain(
        "what has been kept long enough could not be found, which is tried again in a minute: " +
        found.status().to_string());
    return look_again_in(kPause);
  }
  report_damage(*found);
  const bool keeps_any = !found->expired.empty() || found->young;
  const Duration age = core_.age.now();
  const bool mark_is_old = age - marked_ >= kMarkEvery;
  if (core_.keeps_records && keeps_any && (mark_is_old || !found->expired.empty())) {
    mark_age();
    marked_ = age;
  }
  pause_ = pause_after(*found);
  if (found->expired.empty()) return look_again_in(pause_);
  acknowledge(std::move(found->expired));
}

void Expiry::report_damage(const Found& found) {
  if (found.damaged <= told_damaged_) return;
  complain("the dates of " + std::to_string(found.damaged) +
           " results that are kept are damaged; these results stay, with their nonces, until "
           "they are acknowledged: " +
           found.damage.to_string());
  told_damaged_ = found.damaged;
}

Duration Expiry::pause_after(const Found& found) const {
  const Duration pause = found.more ? Duration::zero() : kMarkEvery;
  if (!found.young) return pause;
  const Duration left = core_.options.retention.ttl - core_.age.since(*found.young);
  return std::min(pause, std::max(left, kPause));
}

void Expiry::acknowledge(std::vector<KeptResult> expired) {
  expired_ = std::move(expired);
  next_ = 0;
  open_slots_ = kSlots;
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    core_.pool->post_blocking([this, slot] { acknowledge_some(slot); });
  }
}

void Expiry::acknowledge_some(std::size_t slot) {
  const std::size_t from = failed_ ? expired_.size() : next_.fetch_add(kAtOnce);
  if (from >= expired_.size()) {
    if (open_slots_.fetch_sub(1) != 1) return;
    expired_ = {};
    return look_again_in(failed_ ? kPause : pause_);
  }
  const std::size_t to = std::min(from + kAtOnce, expired_.size());
  unanswered_[slot] = to - from;
  for (std::size_t i = from; i < to; ++i) {
    const KeptResult& kept = expired_[i];
    results_.expire(
        kept, {[this, slot, id = kept.id](const Status& status) { acknowledged(slot, id, status); },
               ReplyOn::kHere});
  }
}

bool Expiry::is_young(const KeptResult& kept) const {
  return core_.age.since(kept.age) < core_.options.retention.ttl;
}

Result<Expiry::Found> Expiry::find() {
  if (!core_.keeps_records) return find_in_memory();
  return find_in_store();
}

// One result at a time: its acknowledgement waits for no store.
Expiry::Found Expiry::find_in_memory() {
  Found found;
  StateLock lock(core_);
  const auto oldest = core_.state.submissions.retention.oldest_remembered();
  if (!oldest) return found;
  if (is_young(*oldest)) {
    found.young = oldest->age;
  } else {
    found.expired.push_back(*oldest);
    found.more = true;
  }
  return found;
}

Result<Expiry::Found> Expiry::find_in_store() {
  Found found;
  std::set<ProcedureId> set_aside;  // these stay, with their dates
  {
    StateLock lock(core_);
    for (const auto& [id, record] : core_.state.unreadable) set_aside.insert(id);
  }
  const Status enough(StatusCode::kUnavailable, "all that is asked for was seen");
  bool stopped = false;
  const Status status = core_.store.scan(Space::kEngine, kKeptKeyPrefix, [&](const StoredRow& row) {
    const auto kept = decode_kept(row.key, row.value);
    if (!kept.ok()) {
      if (found.damaged++ == 0) found.damage = kept.status();
      return Status();
    }
    if (set_aside.contains(kept->id)) return Status();
    const bool young = is_young(*kept);
    if (young) found.young = kept->age;
    stopped = young || found.expired.size() == kFoundAtOnce;
    if (stopped) return enough;
    found.expired.push_back(*kept);
    return Status();
  });
  if (!status.ok() && !stopped) return status;
  found.more = found.expired.size() == kFoundAtOnce;
  return found;
}

// A mark that is on its way already is nearly as good.
void Expiry::mark_age() {
  Effects effects;
  {
    StateLock lock(core_);
    if (core_.state.ids.is_writing() || !core_.unavailable().ok()) return;
    core_.state.ids.write_watermark(core_.state.ids.durable_watermark(), {}, effects);
  }
  publisher_.perform(effects);
}

void Expiry::acknowledged(std::size_t slot, ProcedureId id, const Status& status) {
  // kExpired: the host has acknowledged the result in the meantime.
  if (status.code() == StatusCode::kCorruption) {
    complain("the result of " + name_of(id) +
             " has been kept long enough, but cannot be read: it stays, with its nonce: " +
             status.to_string());
  } else if (!status.ok() && status.code() != StatusCode::kExpired && !failed_.exchange(true)) {
    complain("the result of " + name_of(id) +
             " has been kept long enough but could not be deleted, which is tried again in a "
             "minute: " +
             status.to_string());
  }
  if (unanswered_[slot].fetch_sub(1) != 1) return;
  core_.pool->post_blocking([this, slot] { acknowledge_some(slot); });
}

void Expiry::complain(const std::string& what) {
  {
    StateLock lock(core_);
    if (!core_.unavailable().ok()) return;  // the next run finds the result again
  }
  log(core_.options.log, LogLevel::kWarning, what);
}

void Expiry::look_again_in(Duration pause) {
  {
    StateLock lock(core_);
    PV2_ASSERT(looking_, "a look that ends is under way");
    looking_ = false;
    next_look_ = later(core_.clock.steady_now(), pause);
  }
  if (changed_) changed_();
}

}  // namespace pv2
