// SPDX-License-Identifier: Apache-2.0
//
// Random operations on a scheduler and on its model, compared after each one: which entries were
// polled, in which order, which hold, which wait, and what every call answered. A failure prints
// its seed; pv2/testing/seeds.h says how to repeat it.

#include "scheduler_model.h"

#include <pv2/base/random.h>
#include <pv2/scheduler/master_procedure_scheduler.h>
#include <pv2/scheduler/simple_procedure_scheduler.h>
#include <pv2/testing/seeds.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "support/catch.h"

namespace pv2::testing::scheduler_model_test {

using namespace pv2::test;

namespace {

class Story {
 public:
  Story(SchedulerModel::Kind kind, std::uint64_t seed)
      : random_(seed),
        searches_(seed),
        seldom_(searches_.below(4)),
        bound_(static_cast<std::uint32_t>(random_.below(5))),
        model_(kind, bound_) {
    if (kind == SchedulerModel::Kind::kSimple) {
      real_ = std::make_unique<SimpleProcedureScheduler>(
          clock_, SimpleSchedulerOptions{.bounded_wait = bound_});
    } else {
      MasterSchedulerOptions options;
      options.bounded_wait = bound_;
      real_ = std::make_unique<MasterProcedureScheduler>(clock_, options);
    }
    key_count_ = 1 + random_.below(3);
    member_max_ = 4 + random_.below(20);
    trees_ = random_.below(3);  // 0: roots only
    limits_ = random_.below(2) == 0;
    reports_ = random_.below(2) == 0;
  }

  // Returns what differs, or "".
  std::string run(int steps) {
    for (int i = 0; i < steps; ++i) {
      if (!step()) return difference_ + " after step " + std::to_string(i);
    }
    return finish() ? "" : difference_;
  }

 private:
  bool step() {
    std::uint64_t choice = random_.below(18);
    if ((choice == 16 && !limits_) || (choice == 17 && !reports_)) choice = random_.below(16);
    if (entries_.size() < member_max_ && choice < 4) add_entry();
    if (entries_.empty()) return true;
    if (choice == 16) {
      set_some_limit();
    } else if (choice == 17) {
      report_some_wait();
    } else if (choice < 10) {
      settle_some();
    } else if (choice < 13) {
      if (!poll(1 + random_.below(5))) return false;
    } else if (!ask_one(choice)) {
      return false;
    }
    return same();
  }

  bool ask_one(std::uint64_t choice) {
    ModelEntry& e = *entries_[random_.below(entries_.size())];
    const bool out = e.where == Where::kUnknown || e.where == Where::kOut;
    if (choice == 13 && out) return agree("admit", real_->admit(*e.real), model_.admit(e));
    if (choice == 14 && out) {
      return agree("restore", restore(*real_, *e.real).ok(), model_.restore(e));
    }
    return agree("withdraw", real_->withdraw(*e.real), model_.withdraw(e));
  }

  void set_some_limit() {
    const std::string name(1, static_cast<char>('a' + random_.below(key_count_)));
    const ResourceKey keys[] = {{ResourceClass::kTable, table_key_name("ns", name)},
                                {ResourceClass::kNamespace, "ns"},
                                {ResourceClass::kServer, name}};
    const ResourceKey& key = keys[random_.below(3)];
    std::optional<std::uint32_t> limit;
    if (random_.below(3) != 0) limit = static_cast<std::uint32_t>(random_.below(4));
    limited_.insert(key);
    real_->set_limit(key, limit);
    model_.set_limit(key, limit);
  }

  void report_some_wait() {
    ModelEntry& waiter = *entries_[random_.below(entries_.size())];
    ModelEntry& producer = *entries_[random_.below(entries_.size())];
    const bool out = waiter.where == Where::kOut || waiter.where == Where::kUnknown;
    if (waiter.waits_for != nullptr) {
      end_reported_wait(waiter);
    } else if (waiter.holds && out && waiter.parent != nullptr) {
      report_turn(waiter);
    } else if (out && &waiter != &producer && is_known(waiter.parent)) {
      report(waiter, producer, WaitLink::Why::kReported);
    }
  }

  // What is undone is the tree, or any part of it that the waiter belongs to.
  void report_turn(ModelEntry& waiter) {
    ModelEntry* head = waiter.parent;
    while (head->parent != nullptr && random_.below(2) == 0) head = head->parent;
    report(waiter, *head, WaitLink::Why::kTurn);
  }

  // The scheduler hears of a parent before it hears of its children.
  static bool is_known(const ModelEntry* parent) {
    for (; parent != nullptr; parent = parent->parent) {
      if (parent->where == Where::kUnknown) return false;
    }
    return true;
  }

  void report(ModelEntry& waiter, ModelEntry& producer, WaitLink::Why why) {
    real_->report_wait(*waiter.real, *producer.real, why);
    model_.report_wait(waiter, producer, why);
  }

  void end_reported_wait(ModelEntry& waiter) {
    real_->end_reported_wait(*waiter.real);
    model_.end_reported_wait(waiter);
  }

  LockSet random_locks() {
    LockSet locks;
    for (std::uint64_t parts = random_.below(5) == 0 ? 2 : 1; parts > 0; --parts) {
      const LockMode mode = random_.below(2) == 0 ? LockMode::kShared : LockMode::kExclusive;
      const std::string name(1, static_cast<char>('a' + random_.below(key_count_)));
      const std::string part(1, static_cast<char>('a' + random_.below(key_count_)));
      switch (random_.below(10)) {
        case 0:
          break;
        case 1:
          locks.name_space("ns", mode);
          break;
        case 2:
          locks.server(name, mode);
          break;
        case 3:
          locks.peer(name, mode);
          break;
        case 4:
          locks.key({ResourceClass::kHostFirst, name}, mode);
          break;
        case 5:
          locks.global(name, mode);
          break;
        case 6:
          locks.meta(mode);
          break;
        case 7:
          locks.region("ns", name, part, mode).region("ns", name, "b", mode);
          break;
        case 8:
          locks.region("ns", name, part, mode);
          break;
        default:
          locks.table("ns", name, mode);
          break;
      }
    }
    return locks;
  }

  void add_entry() {
    auto entry = std::make_unique<ModelEntry>();
    if (trees_ != 0 && !entries_.empty() && random_.below(3) < trees_) {
      entry->parent = entries_[random_.below(entries_.size())].get();
      ++entry->parent->live_children;
    }
    static constexpr Priority kPriorities[] = {Priority::kLow, Priority::kNormal, Priority::kNormal,
                                               Priority::kMeta};
    entry->locks = random_locks();
    entry->real = std::make_unique<TestEntry>(
        ++last_id_, entry->locks, entry->parent != nullptr ? entry->parent->real.get() : nullptr,
        kPriorities[random_.below(4)]);
    model_.add(*entry);
    entries_.push_back(std::move(entry));
  }

  void settle_some() {
    EntryList batch;
    std::vector<std::pair<ModelEntry*, Disposition>> plan;
    for (std::uint64_t n = 1 + random_.below(3); n > 0; --n) {
      ModelEntry* e = entries_[random_.below(entries_.size())].get();
      const bool planned =
          std::any_of(plan.begin(), plan.end(), [&](auto& item) { return item.first == e; });
      if (planned || e->where == Where::kWaiting || e->where == Where::kReady) continue;
      auto disposition = static_cast<Disposition>(random_.below(5));
      if (e->polled && random_.below(3) == 0) disposition = Disposition::kReturn;
      if (disposition == Disposition::kComplete && e->live_children != 0) continue;
      const bool queues = disposition == Disposition::kBack || disposition == Disposition::kFront ||
                          disposition == Disposition::kBackUnlock ||
                          disposition == Disposition::kReturn;
      if (queues && e->waits_for != nullptr) end_reported_wait(*e);
      plan.emplace_back(e, disposition);
      batch.push_back(*e->real, disposition);
    }
    real_->settle(std::move(batch));
    for (auto& [e, disposition] : plan) {
      model_.settle(*e, disposition);
      if (disposition == Disposition::kComplete) bury(*e);
    }
  }

  void bury(ModelEntry& dead) {
    if (dead.parent != nullptr) --dead.parent->live_children;
    std::erase_if(entries_, [&](const auto& e) { return e.get() == &dead; });
  }

  bool poll(std::size_t limit) {
    constexpr std::chrono::milliseconds kNow{0};
    const bool reserved = random_.below(4) == 0;
    std::vector<SchedulerEntry*> run(limit);
    run.resize(reserved ? real_->poll_top(run, kNow) : real_->poll(run, kNow));
    const auto expected = model_.poll(
        limit, reserved ? SchedulerModel::For::kReserved : SchedulerModel::For::kAnybody);
    Ids got, want;
    for (SchedulerEntry* e : run) got.push_back(e->id.value);
    for (ModelEntry* e : expected) want.push_back(e->real->id.value);
    return agree("poll", got, want);
  }

  bool same() {
    real_->check_invariants();
    for (const auto& e : entries_) {
      if (e->where == Where::kUnknown) continue;
      if (!(e->real->locks().to_set() == e->locks)) return agree("lock set", false, true);
      if (e->where != Where::kOut) continue;
      const std::string who = " of " + std::to_string(e->real->id.value);
      if (!agree("holds_locks" + who, e->real->holds_locks(), e->holds || e->locks.empty()) ||
          !agree("granted_by_poll" + who, e->real->granted_by_poll(), e->granted_by_poll) ||
          !agree("contended" + who, real_->contended(*e->real), model_.contended(*e))) {
        return false;
      }
    }
    if (!entries_.empty() && !agree_on_place(*entries_[random_.below(entries_.size())])) {
      return false;
    }
    for (const auto& e : entries_) {
      if (!e->polled) continue;
      const bool overtaken = real_->is_overtaken(*e->real, real_->lifts());
      if (!agree("overtaken", overtaken, model_.is_overtaken(*e))) return false;
    }
    const SchedulerCounts counts = real_->counts();
    std::map<ResourceKey, std::pair<Ids, Ids>> locks;
    for (const LockInfo& info : real_->locks()) {
      if (info.holders.empty() && info.waiters.empty()) continue;  // only limited
      locks[info.key] = {ids_of(info.holders), ids_of(info.waiters)};
    }
    return agree("runnable", counts.runnable, model_.count(Where::kReady)) &&
           agree("queued", counts.queued,
                 model_.count(Where::kReady) + model_.count(Where::kWaiting)) &&
           agree("locks", locks, model_.locks()) && agree_on_standing_still();
  }

  // A waiter is told of an entry in its way, and every entry that it is told of is in its way. A
  // limit of 0 is in the way without any entry.
  bool agree_on_place(const ModelEntry& e) {
    const std::string who = " of " + std::to_string(e.real->id.value);
    const QueuePlace place = real_->place_of(*e.real, 1 + random_.below(4));
    const auto links_agree = [this](const WaitLink& link) {
      return !link.awaited || still_waits(link);
    };
    const bool waiting = e.where == Where::kWaiting;
    const bool told = !place.blockers.empty();
    const bool true_of_all = std::all_of(place.blockers.begin(), place.blockers.end(), links_agree);
    return agree("waiting" + who, place.where == QueuePlace::Where::kWaiting, waiting) &&
           agree("ready" + who, place.where == QueuePlace::Where::kReady,
                 e.where == Where::kReady) &&
           (e.where != Where::kReady || agree("ahead" + who, place.ahead, model_.ahead_of(e))) &&
           agree("told of somebody in the way" + who, told,
                 waiting || (e.where == Where::kOut && e.waits_for != nullptr)) &&
           agree("those in the way" + who, true_of_all, true);
  }

  // The scheduler has reported enough cycles: if the members of those that still exist went on,
  // every entry could.
  bool agree_on_standing_still() {
    if (searches_.below(4) < seldom_) return true;
    for (WaitCycle& cycle : new_cycles(*real_)) told_.push_back(std::move(cycle));
    const auto stuck = model_.stuck();
    std::set<const ModelEntry*> told;
    std::erase_if(told_, [&](const WaitCycle& cycle) {
      return !std::all_of(cycle.links.begin(), cycle.links.end(), [&](const WaitLink& link) {
        return still_waits(link) && stuck.contains(by_id(link.waiter));
      });
    });
    for (const WaitCycle& cycle : told_) {
      for (const WaitLink& link : cycle.links) told.insert(by_id(link.waiter));
    }
    return agree("untold cycle", !model_.stuck(told).empty(), false) &&
           agree("stands still", !real_->cycles().empty(), !stuck.empty());
  }

  [[nodiscard]] const ModelEntry* by_id(ProcedureId id) const {
    const auto at = std::find_if(entries_.begin(), entries_.end(),
                                 [&](const auto& e) { return e->real->id == id; });
    return at == entries_.end() ? nullptr : at->get();
  }

  [[nodiscard]] bool still_waits(const WaitLink& link) const {
    const ModelEntry* const waiter = by_id(link.waiter);
    const ModelEntry* const awaited = by_id(link.awaited);
    return waiter != nullptr && awaited != nullptr &&
           model_.waits_for(*waiter, *awaited, link.why, link.key);
  }

  // Takes out and completes every entry, children first; nothing may be left.
  bool finish() {
    while (!entries_.empty()) {
      for (const auto& e : entries_) {
        if (e->live_children != 0) continue;
        real_->withdraw(*e->real);
        model_.withdraw(*e);
        settle(*real_, *e->real, Disposition::kComplete);
        model_.settle(*e, Disposition::kComplete);
        bury(*e);
        break;
      }
      if (!same()) return false;
    }
    for (const ResourceKey& key : limited_) real_->set_limit(key, {});
    return agree("locks left", real_->locks().size(), std::size_t{0}) &&
           agree("queued left", real_->counts().queued, std::size_t{0});
  }

  template <class T>
  bool agree(const std::string& what, const T& real, const T& model) {
    if (real == model) return true;
    difference_ = what;
    if constexpr (requires { Catch::Detail::stringify(real); }) {
      difference_ += ": scheduler " + Catch::Detail::stringify(real) + ", model " +
                     Catch::Detail::stringify(model);
    }
    return false;
  }

  Random random_;
  Random searches_;
  std::uint64_t seldom_;  // 0 to 3: the share of steps, in quarters, without a search
  std::uint32_t bound_;
  SystemClock clock_;
  SchedulerModel model_;
  std::unique_ptr<LockingScheduler> real_;
  std::vector<std::unique_ptr<ModelEntry>> entries_;
  std::uint64_t last_id_ = 0;
  std::uint64_t key_count_ = 0;
  std::uint64_t member_max_ = 0;
  std::uint64_t trees_ = 0;
  bool limits_ = false;
  bool reports_ = false;
  std::vector<WaitCycle> told_;  // reported, and not opened since
  std::set<ResourceKey> limited_;
  std::string difference_;
};

void compare(SchedulerModel::Kind kind) {
  const testing::Seeds seeds = testing::seeds_from_environment(300);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    const std::string difference = Story(kind, seed).run(120);
    if (difference.empty()) continue;
    FAIL("seed " << seed << ": " << difference);
  }
}

}  // namespace

TEST_CASE("the simple scheduler agrees with its model under random operations") {
  compare(SchedulerModel::Kind::kSimple);
}

TEST_CASE("the master scheduler agrees with its model under random operations") {
  compare(SchedulerModel::Kind::kMaster);
}

}  // namespace pv2::testing::scheduler_model_test
