// SPDX-License-Identifier: Apache-2.0
//
// LockingScheduler: one critical section per call. Each follows the same course: read the clock,
// take the mutex, change the lock table and the queues, count what became runnable, leave the
// mutex, then signal sleepers. Where an entry belongs is decided in enqueue(), put_back() and
// place_changed() alone. What others ask about entries and locks is in
// locking_scheduler_listing.cc.

#include "pv2/scheduler/locking_scheduler.h"

#include <pv2/base/assert.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "lock_table.h"
#include "rank.h"
#include "ready_queue.h"
#include "seat_turns.h"

namespace pv2 {

LockingScheduler::Section::Section(const LockingScheduler& scheduler) : scheduler_(scheduler) {
  scheduler_.queues_mutex_.lock();
  before_ = scheduler_.table_->looks();
  scheduler_.table_->begin_section();
}

LockingScheduler::Section::~Section() {
  const std::uint64_t looks = scheduler_.table_->looks() - before_;
  scheduler_.section_looks_max_ = std::max(scheduler_.section_looks_max_, looks);
  scheduler_.show_cycles();  // whatever the section did, so that no section can forget it
  scheduler_.queues_mutex_.unlock();
}

// Goes on with what a section began and could not end: very many readers that wait for one writer
// are granted its key in sections. A poll does this, as a thread that releases a lock may hold
// mutexes of the engine. `looks_before`: when this thread took the mutex.
void LockingScheduler::serve_rest(std::uint64_t looks_before) {
  table_->begin_section();
  table_->serve_rest();
  place_changed();
  section_looks_max_ = std::max(section_looks_max_, table_->looks() - looks_before);
  signal(claim_sleepers());
}

namespace {

// Ranks of higher classes are larger, so the top classes are all classes from some number on.
std::size_t lowest_top_class(const ReadyQueue& ready) {
  std::size_t cls = 0;
  while (cls < kRankClasses && !ready.is_top(first_rank_of(cls))) ++cls;
  return cls;
}

// How urgency_ packs its two parts.
constexpr int kUrgencyShift = 16;
constexpr std::uint64_t class_in(std::uint64_t urgency) { return urgency & 0xFFFFU; }
constexpr std::uint64_t lifts_in(std::uint64_t urgency) { return urgency >> kUrgencyShift; }

}  // namespace

LockingScheduler::LockingScheduler(std::unique_ptr<ReadyQueue> ready, const Clock& clock)
    : clock_(clock),
      top_class_floor_(lowest_top_class(*ready)),
      table_(std::make_unique<LockTable>()),
      ready_(std::move(ready)),
      turns_(std::make_unique<SeatTurns>()) {}

LockingScheduler::~LockingScheduler() = default;

void LockingScheduler::admit(EntryList&& batch) {
  if (batch.empty()) return;
  const SteadyTime now = clock_.steady_now();
  Wakes sleepers;
  {
    Section lock(*this);
    while (SchedulerEntry* const entry = batch.pop_front()) {
      know(*entry);
      if (!entry->holds_locks()) (void)table_->take(*entry, now);
      place_changed();
    }
    sleepers = claim_sleepers();
  }
  signal(sleepers);
}

bool LockingScheduler::contended(const SchedulerEntry& entry) const {
  if (entry.locks().empty()) return false;
  Section lock(*this);
  return std::as_const(*table_).contended(entry);
}

std::vector<NotRestored> LockingScheduler::restore(EntryList&& batch) {
  std::vector<NotRestored> failed;
  if (batch.empty()) return failed;
  const SteadyTime now = clock_.steady_now();
  Wakes sleepers;
  {
    Section lock(*this);
    while (SchedulerEntry* const entry = batch.pop_front()) {
      know(*entry);
      if (entry->holds_locks()) continue;
      if (Status status = table_->restore(*entry, now); !status.ok()) {
        failed.push_back({entry, std::move(status)});
      }
    }
    place_changed();
    sleepers = claim_sleepers();
  }
  signal(sleepers);
  return failed;
}

std::size_t LockingScheduler::settle(EntryList&& batch, SchedulerCaller caller) {
  if (batch.empty()) return 0;
  const SteadyTime now = clock_.steady_now();
  Wakes sleepers;
  {
    Section lock(*this);
    seat_here_ = seat_of(caller.seat);
    while (SchedulerEntry* const entry = batch.pop_front()) apply(*entry, now);
    seat_here_ = kCommonSeat;
    sleepers = claim_sleepers(caller.own);
  }
  signal(sleepers);
  return sleepers.own;
}

std::size_t LockingScheduler::poll(std::span<SchedulerEntry*> run,
                                   std::chrono::milliseconds patience, SchedulerCaller caller) {
  return poll_for(Work::kAny, run, patience, caller);
}

std::size_t LockingScheduler::poll_top(std::span<SchedulerEntry*> run,
                                       std::chrono::milliseconds patience) {
  return poll_for(Work::kTop, run, patience, {});
}

std::size_t LockingScheduler::poll_for(Work work, std::span<SchedulerEntry*> run,
                                       std::chrono::milliseconds patience, SchedulerCaller caller) {
  // Patience is real time by contract, whatever clock the host injected: it bounds a thread's
  // sleep.
  using RealClock = std::chrono::steady_clock;
  // A century and a half: more would leave the range of the clock.
  constexpr auto kPatienceMax =
      std::chrono::duration_cast<std::chrono::milliseconds>(RealClock::duration::max() / 2);
  patience = std::min(patience, kPatienceMax);
  RealClock::time_point give_up{};

  MutexLock lock(queues_mutex_);
  Sleepers& sleepers = work == Work::kAny ? any_ : top_;
  CondVar& arrived = work == Work::kAny ? work_arrived_ : top_work_arrived_;
  std::uint64_t looks_before = table_->looks();
  while (!stopped_) {
    if (table_->owes()) serve_rest(looks_before);
    if (const std::size_t taken = take(work, run, caller); taken != 0 || run.empty()) {
      if (claim_one_for_ready()) work_arrived_.notify_one();
      return taken;
    }
    if (table_->owes()) {
      // However many are owed an answer, other threads work between two sections.
      queues_mutex_.unlock();
      std::this_thread::yield();
      queues_mutex_.lock();
      looks_before = table_->looks();
      continue;
    }
    if (patience <= patience.zero()) break;
    if (std::exchange(sleepers.nudged, false)) break;
    const auto now = RealClock::now();
    if (give_up == RealClock::time_point()) give_up = now + patience;
    if (now >= give_up) break;

    ++sleepers.asleep;
    arrived.wait_for(queues_mutex_, give_up - now);
    looks_before = table_->looks();
    // A token stands for one worker that a signaller already took off the sleepers; it does not
    // matter which worker consumes it, only that no signal is counted for a worker that has left.
    if (sleepers.tokens != 0) {
      --sleepers.tokens;
    } else {
      --sleepers.asleep;
    }
  }
  return 0;
}

// As long as an entry can run and a worker sleeps, a worker is on its way to poll: it was
// signalled, or is a caller of settle() that polls next. A poll may take an entry for which another
// kind of worker was signalled, and leave one for which nobody is on its way.
bool LockingScheduler::claim_one_for_ready() {
  if (runnable_ == 0 || any_.asleep == 0 || any_.tokens != 0) return false;
  --any_.asleep;
  ++any_.tokens;
  ++wakes_;
  return true;
}

void LockingScheduler::wake_for_ready() {
  bool is_claimed = false;
  {
    Section lock(*this);
    is_claimed = claim_one_for_ready();
  }
  if (is_claimed) work_arrived_.notify_one();
}

void LockingScheduler::nudge() { nudge(Work::kAny); }
void LockingScheduler::nudge_top() { nudge(Work::kTop); }

void LockingScheduler::nudge(Work work) {
  {
    Section lock(*this);
    Sleepers& sleepers = work == Work::kAny ? any_ : top_;
    // An earlier nudge may be left over: the worker that it woke has found an entry.
    const bool is_on_its_way = std::exchange(sleepers.nudged, true) && sleepers.tokens != 0;
    if (is_on_its_way || sleepers.asleep == 0) return;
    --sleepers.asleep;
    ++sleepers.tokens;
  }
  (work == Work::kAny ? work_arrived_ : top_work_arrived_).notify_one();
}

std::uint64_t LockingScheduler::lifts() const noexcept {
  return lifts_in(urgency_.load(std::memory_order_relaxed));
}

// The worker may read the rank that `polled` was polled with until the entry is settled.
bool LockingScheduler::is_overtaken(const SchedulerEntry& polled,
                                    std::uint64_t lifts_then) const noexcept {
  const std::uint64_t now = urgency_.load(std::memory_order_relaxed);
  return class_in(now) > rank_class(polled.queued_rank_) || lifts_in(now) != lifts_then;
}

bool LockingScheduler::has_ready() const noexcept {
  return has_ready_.load(std::memory_order_relaxed);
}

bool LockingScheduler::has_top_classes() const noexcept {
  return top_class_floor_ != 0 && top_class_floor_ < kRankClasses;
}

bool LockingScheduler::is_top_work(const SchedulerEntry& polled) const noexcept {
  return has_top_classes() && rank_class(polled.queued_rank_) >= top_class_floor_;
}

bool LockingScheduler::withdraw(SchedulerEntry& entry) {
  const SteadyTime now = clock_.steady_now();
  Wakes sleepers;
  {
    Section lock(*this);
    switch (entry.place_) {
      case SchedulerEntry::Place::kUnknown:
      case SchedulerEntry::Place::kOut:
        return false;
      case SchedulerEntry::Place::kWaiting:
        entry.place_ = SchedulerEntry::Place::kOut;
        table_->cancel(entry, now);
        break;
      case SchedulerEntry::Place::kReady:
        entry.place_ = SchedulerEntry::Place::kOut;
        leave_ready(entry);
        entry.queued_rank_ = SchedulerEntry::kNotQueued;
        --runnable_;
        if (entry.granted_in_queue_) table_->release(entry, now);
        entry.granted_in_queue_ = false;
        break;
    }
    --queued_;
    place_changed();
    sleepers = claim_sleepers();
  }
  signal(sleepers);
  return true;
}

void LockingScheduler::stop() {
  {
    Section lock(*this);
    stopped_ = true;
    for (Sleepers* const sleepers : {&any_, &top_}) {
      sleepers->tokens += std::exchange(sleepers->asleep, 0);
    }
  }
  work_arrived_.notify_all();
  top_work_arrived_.notify_all();
}

void LockingScheduler::set_limit(const ResourceKey& key, std::optional<std::uint32_t> limit) {
  const SteadyTime now = clock_.steady_now();
  Wakes sleepers;
  {
    Section lock(*this);
    table_->set_limit(key, limit.value_or(LockNode::kNoLimit), now);
    place_changed();
    sleepers = claim_sleepers();
  }
  signal(sleepers);
}

void LockingScheduler::report_wait(SchedulerEntry& waiter, SchedulerEntry& producer,
                                   WaitLink::Why why) {
  const SteadyTime now = clock_.steady_now();
  Wakes sleepers;
  {
    Section lock(*this);
    meet(waiter);
    meet(producer);
    table_->report_wait(waiter, producer, why, now);
    place_changed();
    sleepers = claim_sleepers();
  }
  signal(sleepers);
}

void LockingScheduler::end_reported_wait(SchedulerEntry& waiter) {
  Section lock(*this);
  table_->end_reported_wait(waiter);
  place_changed();
  (void)note_urgency();
}

void LockingScheduler::meet(SchedulerEntry& entry) {
  if (entry.place_ != SchedulerEntry::Place::kUnknown) return;
  table_->meet(entry, ready_->rank(entry));
  entry.place_ = SchedulerEntry::Place::kOut;
  if (entry.first_known_child() != nullptr)
    place_changed();  // its children now have at least its rank
}

void LockingScheduler::know(SchedulerEntry& entry) {
  meet(entry);
  PV2_ASSERT(entry.place_ == SchedulerEntry::Place::kOut,
             "an entry that is queued belongs to the scheduler until it is polled or withdrawn");
}

void LockingScheduler::apply(SchedulerEntry& entry, SteadyTime now) {
  know(entry);
  if (entry.disposition == Disposition::kReturn) return put_back(entry);
  entry.is_polled_ = false;
  entry.granted_by_poll_ = false;
  entry.queued_rank_ = SchedulerEntry::kNotQueued;
  switch (entry.disposition) {
    case Disposition::kReturn:
      return;
    case Disposition::kBack:
      enqueue(entry, ReadySection::kBack, now);
      return;
    case Disposition::kFront:
      enqueue(entry, ReadySection::kFront, now);
      return;
    case Disposition::kParkUnlock:
      unlock(entry, now);
      return;
    case Disposition::kBackUnlock:
      unlock(entry, now);
      enqueue(entry, ReadySection::kBack, now);
      return;
    case Disposition::kComplete:
      unlock(entry, now);
      table_->forget(entry);
      entry.place_ = SchedulerEntry::Place::kUnknown;
      place_changed();  // ranks lent by reported waits are taken back
      return;
  }
}

void LockingScheduler::enqueue(SchedulerEntry& entry, ReadySection section, SteadyTime now) {
  ++queued_;
  if (!entry.holds_locks()) {
    if (!table_->take(entry, now)) {
      entry.place_ = SchedulerEntry::Place::kWaiting;
      table_->wait(entry, now);
      place_changed();
      return;
    }
    entry.granted_in_queue_ = true;
  }
  push_ready(entry, section);
  place_changed();
}

void LockingScheduler::unlock(SchedulerEntry& entry, SteadyTime now) {
  if (!entry.holds_locks_) return;
  table_->release(entry, now);
  place_changed();
}

ReadyPlace LockingScheduler::ready_place(const SchedulerEntry& entry) {
  return {.entity = LockTable::entity(entry),
          .section = entry.queued_in_front_ ? ReadySection::kFront : ReadySection::kBack,
          .rank = entry.queued_rank_,
          .seat = entry.seat_};
}

void LockingScheduler::leave_ready(SchedulerEntry& entry) {
  ready_->remove(entry, ready_place(entry));
  turns_->removed(entry.seat_);
}

void LockingScheduler::push_ready(SchedulerEntry& entry, ReadySection section) {
  entry.place_ = SchedulerEntry::Place::kReady;
  entry.queued_in_front_ = section == ReadySection::kFront;
  entry.queued_rank_ = entry.rank_;
  entry.seat_ = seat_here_;
  entry.seat_ = ready_->push(entry, ready_place(entry));
  count_ready(entry);
}

// The entry kept its locks while it was out, so it is ready again. If it was lent another rank
// since, it is the first of the entries with that rank.
void LockingScheduler::put_back(SchedulerEntry& entry) {
  PV2_ASSERT(entry.holds_locks(),
             "an entry that is returned has kept the locks that it was polled with");
  PV2_ASSERT(entry.is_polled_, "only an entry that was polled and not settled since is returned");
  entry.is_polled_ = false;
  entry.granted_in_queue_ = entry.granted_by_poll_;
  entry.granted_by_poll_ = false;
  entry.place_ = SchedulerEntry::Place::kReady;
  entry.queued_rank_ = entry.rank_;
  entry.seat_ = seat_here_;
  entry.seat_ = ready_->put_back(entry, ready_place(entry));
  ++queued_;
  count_ready(entry);
}

void LockingScheduler::count_ready(const SchedulerEntry& entry) {
  ++runnable_;
  turns_->added(entry.seat_);
  ++fresh_;
  if (ready_->is_top(entry.rank_)) ++fresh_top_;
}

// Writes the hints only when they change, as workers read them before each step. Returns whether a
// polled entry was lent a higher class.
bool LockingScheduler::note_urgency() {
  // What the lock table owes, a poll has to serve.
  if (const bool ready = runnable_ != 0 || table_->owes(); ready != has_ready()) {
    has_ready_.store(ready, std::memory_order_relaxed);
  }
  const std::uint64_t urgency = table_->lifts_of_polled() << kUrgencyShift | ready_->first_class();
  const std::uint64_t before = urgency_.load(std::memory_order_relaxed);
  if (urgency == before) return false;
  urgency_.store(urgency, std::memory_order_relaxed);
  return lifts_in(urgency) != lifts_in(before);
}

// Queues the entries that the lock table has granted their locks, and moves those it has given
// another rank. An entry that waited goes before those that begin: it arrived earlier than they
// did.
void LockingScheduler::place_changed() {
  while (SchedulerEntry* const entry = table_->granted().pop_front()) {
    entry->granted_in_queue_ = true;
    push_ready(*entry, ReadySection::kFront);
  }
  auto& reranked = table_->reranked();
  if (reranked.size() > 1) {  // in an order that does not depend on how the ranks were found
    std::sort(reranked.begin(), reranked.end(),
              [](const SchedulerEntry* a, const SchedulerEntry* b) { return a->id < b->id; });
  }
  for (SchedulerEntry* const entry : reranked) {
    if (entry->place_ != SchedulerEntry::Place::kReady || entry->queued_rank_ == entry->rank_) {
      continue;
    }
    leave_ready(*entry);
    if (ready_->is_top(entry->rank_) && !ready_->is_top(entry->queued_rank_)) ++lifted_to_top_;
    entry->queued_rank_ = entry->rank_;
    entry->seat_ = ready_->push(*entry, ready_place(*entry));
    turns_->added(entry->seat_);
  }
  reranked.clear();
  show_cycles();
}

std::size_t LockingScheduler::take(Work work, std::span<SchedulerEntry*> run,
                                   SchedulerCaller caller) {
  if (runnable_ == 0) return 0;
  if (work == Work::kAny) {
    // A worker that sleeps, or was signalled and is on its way, gets its share.
    const std::size_t workers = 1 + any_.asleep + any_.tokens;
    const std::size_t share = (runnable_ + workers - 1) / workers;
    run = run.first(std::min(run.size(), std::max(share, caller.own)));
  }
  const Seat seat = seat_of(caller.seat);
  const SeatChoice choice = turns_->choice(seat, runnable_);
  const std::size_t taken =
      work == Work::kAny ? ready_->take(run, choice) : ready_->take_top(run, choice);
  for (SchedulerEntry* const entry : run.first(taken)) {
    turns_->removed(entry->seat_);
    entry->is_polled_ = true;
    entry->place_ = SchedulerEntry::Place::kOut;
    entry->granted_by_poll_ = entry->granted_in_queue_;
    entry->granted_in_queue_ = false;
  }
  if (taken != 0) turns_->polled(seat);
  runnable_ -= taken;
  queued_ -= taken;
  (void)note_urgency();
  return taken;
}

// Ends a critical section that may have made something runnable. Work of the top classes goes to
// reserved workers, as far as they sleep; the rest goes to ordinary workers. If an entry in a
// worker's run became urgent, one reserved worker is to look for it.
LockingScheduler::Wakes LockingScheduler::claim_sleepers(std::size_t own) {
  const bool looks_into_runs = note_urgency();
  Wakes wakes;
  const std::size_t lifted = std::exchange(lifted_to_top_, 0);  // no new work for other workers
  wakes.top = std::min(std::exchange(fresh_top_, 0) + lifted, top_.asleep);
  if (looks_into_runs && !std::exchange(top_.nudged, true)) {
    wakes.top = std::max<std::size_t>(wakes.top, std::min<std::size_t>(1, top_.asleep));
  }
  const std::size_t fresh_for_top = wakes.top - std::min(wakes.top, lifted);
  std::size_t fresh_for_any = std::exchange(fresh_, 0) - fresh_for_top;
  wakes.own = std::min(own, fresh_for_any);
  fresh_for_any -= wakes.own;
  wakes.any = std::min(fresh_for_any, any_.asleep);
  // A worker has to go on with what this section could not end.
  if (table_->owes() && wakes.any == 0) wakes.any = std::min<std::size_t>(1, any_.asleep);
  top_.asleep -= wakes.top;
  top_.tokens += wakes.top;
  any_.asleep -= wakes.any;
  any_.tokens += wakes.any;
  wakes_ += wakes.top + wakes.any;
  return wakes;
}

void LockingScheduler::signal(const Wakes& wakes) {
  for (std::size_t i = 0; i < wakes.top; ++i) top_work_arrived_.notify_one();
  for (std::size_t i = 0; i < wakes.any; ++i) work_arrived_.notify_one();
}

}  // namespace pv2
