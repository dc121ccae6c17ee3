// SPDX-License-Identifier: Apache-2.0
//
// TestEntry and helpers for the scheduler's tests: an entry with a public destructor, and short
// spellings for one settle() and one poll(). Nothing here knows the rules.

#pragma once

#include <pv2/scheduler/procedure_scheduler.h>
#include <pv2/scheduler/scheduler_entry.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace pv2::test {

inline constexpr LockMode kShared = LockMode::kShared;
inline constexpr LockMode kExclusive = LockMode::kExclusive;

/// Owned by the test; lives until the scheduler has completed it.
class TestEntry final : public SchedulerEntry {
 public:
  explicit TestEntry(std::uint64_t number, LockSet lock_set = {},
                     SchedulerEntry* parent_entry = nullptr, Priority prio = Priority::kNormal) {
    id = ProcedureId{number};
    if (!lock_set.empty()) edit_locks() = std::move(lock_set);
    set_parent(parent_entry);
    priority = prio;
  }
  ~TestEntry() = default;
};

inline ResourceKey table_key(const std::string& name) {
  return {ResourceClass::kTable, table_key_name("ns", name)};
}
inline LockSet table(const std::string& name, LockMode mode) {
  return std::move(LockSet().table("ns", name, mode));
}
inline LockSet region(const std::string& of_table, const std::string& name) {
  return std::move(LockSet().region("ns", of_table, name, LockMode::kExclusive));
}
inline LockSet name_space(const std::string& name, LockMode mode) {
  return std::move(LockSet().name_space(name, mode));
}
inline LockSet server(const std::string& name, LockMode mode = LockMode::kExclusive) {
  return std::move(LockSet().server(name, mode));
}
inline LockSet peer(const std::string& name, LockMode mode = LockMode::kExclusive) {
  return std::move(LockSet().peer(name, mode));
}

inline void settle(ProcedureScheduler& scheduler, SchedulerEntry& entry, Disposition disposition) {
  EntryList batch;
  batch.push_back(entry, disposition);
  scheduler.settle(std::move(batch));
}

/// admit() and queue at the back.
inline void submit(ProcedureScheduler& scheduler, SchedulerEntry& entry) {
  scheduler.admit(entry);
  settle(scheduler, entry, Disposition::kBack);
}

inline void submit(ProcedureScheduler& scheduler, std::initializer_list<SchedulerEntry*> entries) {
  for (SchedulerEntry* entry : entries) submit(scheduler, *entry);
}

/// OK, or why `entry` has not taken the locks that it held.
inline Status restore(ProcedureScheduler& scheduler, SchedulerEntry& entry) {
  EntryList one;
  one.push_back(entry);
  const std::vector<NotRestored> failed = scheduler.restore(std::move(one));
  return failed.empty() ? Status() : failed.front().why;
}

inline void complete(ProcedureScheduler& scheduler, SchedulerEntry& entry) {
  settle(scheduler, entry, Disposition::kComplete);
}

/// The next entry that can run, or null; never waits.
inline SchedulerEntry* poll(ProcedureScheduler& scheduler) {
  std::array<SchedulerEntry*, 1> run{};
  return scheduler.poll(run, std::chrono::milliseconds(0)) == 0 ? nullptr : run[0];
}

/// The ids of everything that can run now, in the order of service, one poll at a time.
inline std::vector<std::uint64_t> poll_all(ProcedureScheduler& scheduler) {
  std::vector<std::uint64_t> ids;
  while (SchedulerEntry* entry = poll(scheduler)) ids.push_back(entry->id.value);
  return ids;
}

/// The cycles that a search finds now and did not find before.
inline std::vector<WaitCycle> new_cycles(ProcedureScheduler& scheduler) {
  scheduler.search_cycles();
  return scheduler.take_new_cycles();
}

using Ids = std::vector<std::uint64_t>;

inline Ids ids_of(const std::vector<LockInfo::Party>& parties) {
  Ids ids;
  for (const auto& party : parties) ids.push_back(party.id.value);
  return ids;
}

inline LockInfo lock_on(const ProcedureScheduler& scheduler, const ResourceKey& key) {
  for (LockInfo& info : scheduler.locks()) {
    if (info.key == key) return info;
  }
  return {};
}

}  // namespace pv2::test
