// SPDX-License-Identifier: Apache-2.0
//
// What an executor shows of itself. It is collected in sections, so no thread waits for the state
// mutex for long.

#include "pv2/engine/inspection.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/state_lock.h"
#include "executor/engine.h"
#include "watch/explain.h"
#include "watch/listing.h"

namespace pv2 {

Result<ProcedureInfo> Inspection::describe(ProcedureId id) const {
  return describe_procedure(engine_->core, id);
}

ProcedurePage Inspection::list(const ListFilter& filter, ProcedureId after,
                               std::size_t limit) const {
  return list_procedures(engine_->core, filter, after, limit);
}

std::vector<ProcedureInfo> Inspection::list() const { return list({}, {}, SIZE_MAX).procedures; }

Result<std::vector<HistoryEntry>> Inspection::history(ProcedureId id) const {
  return history_of(engine_->core, id);
}

std::vector<RunningProcedure> Inspection::running() const {
  return running_procedures(engine_->core);
}

Result<Explanation> Inspection::explain(ProcedureId id) const {
  return pv2::explain(engine_->core, id);
}

std::vector<UnreadableRecord> Inspection::unreadable() const {
  StateLock lock(engine_->core);
  std::vector<UnreadableRecord> records;
  for (const auto& [id, record] : engine_->core.state.unreadable) records.push_back(record);
  return records;
}

std::size_t Inspection::live_procedures() const {
  StateLock lock(engine_->core);
  return engine_->core.state.live.size();
}

std::vector<LockInfo> Inspection::locks() const {
  std::vector<LockInfo> infos = engine_->core.scheduler.locks();
  std::vector<LockInfo::Party*> parties;
  for (LockInfo& info : infos) {
    for (auto* const list : {&info.holders, &info.waiters}) {
      for (LockInfo::Party& party : *list) parties.push_back(&party);
    }
  }
  // In sections, like the listing itself: no thread waits for the state mutex for long.
  constexpr std::size_t kSectionMax = 1024;
  for (std::size_t begin = 0; begin < parties.size(); begin += kSectionMax) {
    const std::size_t count = std::min(kSectionMax, parties.size() - begin);
    StateLock lock(engine_->core);
    for (LockInfo::Party* const party : std::span(parties).subspan(begin, count)) {
      const Execution* const execution = engine_->core.find(party->id);
      if (execution != nullptr) party->type = execution->name_of_type();
    }
  }
  return infos;
}

std::vector<TypeCounts> Inspection::counts() const {
  StateLock lock(engine_->core);
  std::vector<TypeCounts> counts = engine_->core.state.counts;
  std::erase_if(counts, [](const TypeCounts& each) { return each.type.empty(); });
  return counts;
}

std::vector<WaitCycle> Inspection::deadlocks() const { return engine_->core.scheduler.cycles(); }

}  // namespace pv2
