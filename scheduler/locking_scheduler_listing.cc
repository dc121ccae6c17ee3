// SPDX-License-Identifier: Apache-2.0
//
// What a LockingScheduler tells about its entries and their locks: cycles of waits, the place of
// an entry, who holds what, counts. What goes through all entries is done in sections, between
// which other threads work.

#include <pv2/base/assert.h>

#include <thread>
#include <utility>

#include "lock_listing.h"
#include "lock_table.h"
#include "pv2/scheduler/locking_scheduler.h"
#include "ready_queue.h"
#include "seat_turns.h"
#include "wait_search.h"

namespace pv2 {
namespace {

// How many cycles one search keeps, and one listing shows: each may cost a walk through all
// waiters. Further cycles of the same members are found when the kept ones are opened.
constexpr std::size_t kCyclesMax = 64;

}  // namespace

bool LockingScheduler::suspects_cycles() const noexcept {
  return suspects_cycles_.load(std::memory_order_relaxed);
}

bool LockingScheduler::has_new_cycles() const noexcept {
  return new_cycles_.load(std::memory_order_relaxed);
}

std::vector<WaitCycle> LockingScheduler::take_new_cycles() {
  Section lock(*this);
  std::vector<WaitCycle> cycles = table_->take_closed_cycles();
  show_cycles();
  return cycles;
}

// Publishes what other threads look at without the mutex.
void LockingScheduler::show_cycles() const {
  const auto show = [](std::atomic<bool>& hint, bool value) {
    if (hint.load(std::memory_order_relaxed) != value) hint.store(value, std::memory_order_relaxed);
  };
  show(new_cycles_, table_->has_closed_cycles());
  show(suspects_cycles_, table_->suspects_cycles());
}

// Does one action in sections, between which other threads work, until there is no more.
template <class Prepare, class Part>
void LockingScheduler::in_sections(Prepare prepare, Part part) const {
  for (bool first = true, more = true; more; first = false) {
    if (!first) std::this_thread::yield();
    prepare();
    Section lock(*this);
    more = part();
    show_cycles();
  }
}

void LockingScheduler::copy_waits(WaitSearch& search) const {
  bool begun = false;
  in_sections([&] { search.graph.reserve_more(kSectionMax + 1); },
              [&]() PV2_REQUIRES(queues_mutex_) {
                if (!std::exchange(begun, true)) table_->begin(search);
                return table_->copy_waits(search);
              });
}

void LockingScheduler::search_cycles() {
  if (!suspects_cycles()) return;
  WaitSearch search;
  search.keeps = true;
  copy_waits(search);
  if (search.at_limits) search.graph.weigh_in_any_case();
  search.found =
      search.graph.find_cycles([&](ProcedureId id) { return search.standing.contains(id.value); },
                               WaitGraph::Overlap::kAvoided, kCyclesMax);
  confirm_limits(search);
  in_sections([] {},
              [&]() PV2_REQUIRES(queues_mutex_) {
                table_->adopt(search);
                return false;
              });
  in_sections([] {}, [&]() PV2_REQUIRES(queues_mutex_) { return table_->end(search); });
}

void LockingScheduler::confirm_limits(WaitSearch& search) const {
  std::vector<WaitGraph::Index> members;
  for (const WaitGraph::FoundCycle& found : search.found) {
    if (found.through_a_limit) {
      members.insert(members.end(), found.members.begin(), found.members.end());
    }
  }
  if (members.empty()) return;
  search.to_confirm = search.graph.reach_of(members);
  in_sections([] {}, [&]() PV2_REQUIRES(queues_mutex_) { return table_->confirm(search); });
}

std::vector<WaitCycle> LockingScheduler::cycles() const {
  WaitSearch search;
  copy_waits(search);
  search.found = search.graph.find_cycles([](ProcedureId) { return false; },
                                          WaitGraph::Overlap::kAllowed, kCyclesMax);
  confirm_limits(search);
  in_sections([] {},
              [&]() PV2_REQUIRES(queues_mutex_) {
                table_->verify(search);
                return false;
              });
  in_sections([] {}, [&]() PV2_REQUIRES(queues_mutex_) { return table_->end(search); });
  std::vector<WaitCycle> cycles;
  for (WaitGraph::FoundCycle& found : search.found) cycles.push_back(std::move(found.cycle));
  return cycles;
}

QueuePlace LockingScheduler::place_of(const SchedulerEntry& entry, std::size_t most) const {
  QueuePlace place;
  Section lock(*this);
  place.runnable = runnable_;
  switch (entry.place_) {
    case SchedulerEntry::Place::kUnknown:
      return place;
    case SchedulerEntry::Place::kReady:
      place.where = QueuePlace::Where::kReady;
      place.ahead = ready_->count_ahead(entry, ready_place(entry), QueuePlace::kAheadMax);
      return place;
    case SchedulerEntry::Place::kWaiting:
      place.where = QueuePlace::Where::kWaiting;
      break;
    case SchedulerEntry::Place::kOut:
      break;
  }
  std::as_const(*table_).blockers_of(entry, most, place);
  return place;
}

std::vector<LockInfo> LockingScheduler::locks() const {
  LockListing listing;
  TableCursor cursor;
  bool open = false;
  in_sections([&] { listing.reserve_section(); },
              [&]() PV2_REQUIRES(queues_mutex_) {
                if (!std::exchange(open, true)) table_->open(cursor);
                const bool more = std::as_const(*table_).copy_section(cursor, listing);
                if (!more) table_->close(cursor);
                return more;
              });
  return std::move(listing).assemble();
}

SchedulerCounts LockingScheduler::counts() const {
  MutexLock lock(queues_mutex_);
  return {queued_, runnable_, any_.asleep + top_.asleep, wakes_};
}

SchedulerLooks LockingScheduler::looks() const {
  MutexLock lock(queues_mutex_);
  return {table_->looks(), section_looks_max_};
}

void LockingScheduler::check_invariants() const {
  MutexLock lock(queues_mutex_);
  std::as_const(*table_).check_invariants();
  PV2_ASSERT(
      table_->granted().empty() && table_->reranked().empty(),
      "an entry that was granted its set or has another rank is placed before the section ends");
  PV2_ASSERT(runnable_ <= queued_, "every runnable entry is queued");
  PV2_ASSERT(turns_->runnable() == runnable_, "every runnable entry is counted at its seat");
  PV2_ASSERT(fresh_ == 0 && fresh_top_ == 0,
             "entries that became runnable were counted for the sleeping workers");
}

}  // namespace pv2
