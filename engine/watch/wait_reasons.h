// SPDX-License-Identifier: Apache-2.0
//
// WaitReasons: finds out why one procedure does not go on. This is the one place where the state of
// an execution becomes a WaitReason. Facts about queues and locks come from the scheduler, whose
// mutex is inside the state mutex. The number of tree members looked at is bounded for all reasons
// together, so that the critical section stays short.

#pragma once

#include <memory>
#include <vector>

#include "core/engine_core.h"
#include "pv2/engine/explanation.h"
#include "watch/parking.h"

namespace pv2 {

/// Lives within one critical section of the state mutex, and describes that moment.
class WaitReasons {
 public:
  explicit WaitReasons(EngineCore& core) PV2_REQUIRES(core.state_mutex);

  /// At least one reason.
  [[nodiscard]] std::vector<WaitReason> of(Execution& execution);

 private:
  using Kind = WaitReason::Kind;

  void find(Execution& execution);
  void by_phase(Execution& execution);
  void queued(const Execution& execution);
  void in_flight(const Execution& execution);
  void waiting(const Execution& execution);
  void awaited(const Execution& execution);
  void awaited_slot(const AwaitSlot& slot, const Execution& execution, std::size_t& events);
  void only_time(const Execution& execution);
  void children(const Execution& execution);
  void stopped_by_failure(Execution& head, Execution& execution);
  void ended_by_order(const Execution& head);
  void in_flight_around(Execution& head);
  void offloaded(const Execution& execution);
  void parked(Execution& execution);
  void finished(const Execution& execution);
  void blockers(const QueuePlace& place);

  WaitReason& add(Kind kind);
  WaitReason& find_or_add(Kind kind);
  WaitReason& last_of(Kind kind);
  template <class Visit>
  void for_each_listed(const std::unique_ptr<MembersById>& list, const Execution& top,
                       Visit&& visit);
  [[nodiscard]] bool look_at_one_more();
  void set_deadline(WaitReason& reason, const Execution& execution) const;
  [[nodiscard]] Duration age_of(WallTime since) const;

  EngineCore& core_;
  const WallTime wall_;
  const SteadyTime steady_;
  const Status standstill_;  // why nothing goes on at all, or OK
  const std::vector<Execution*> running_;
  std::vector<WaitReason> reasons_;
  // Looks at members of trees and, apart from these, at parked ones, in this one critical section.
  std::size_t looks_left_ = kSectionPauses;
  ParkedLooks parked_looks_{128};
};

}  // namespace pv2
