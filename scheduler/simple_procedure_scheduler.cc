// SPDX-License-Identifier: Apache-2.0
//
// SimpleProcedureScheduler: a single lane as ReadyQueue. Cannot fail.

#include "pv2/scheduler/simple_procedure_scheduler.h"

#include <memory>

#include "lock_table.h"
#include "ready_queue.h"

namespace pv2 {
namespace {

class OneLane final : public ReadyQueue {
 public:
  explicit OneLane(std::uint32_t bounded_wait) : bounded_wait_(bounded_wait) {}

  // Without classes and priorities all entries are equal, so there is nothing to lend or to
  // reserve.
  [[nodiscard]] std::uint16_t rank(const SchedulerEntry& /*entry*/) const override { return 0; }
  [[nodiscard]] bool is_top(std::uint16_t /*rank*/) const override { return true; }

  void push(SchedulerEntry& entry, LockNode* /*entity*/, ReadySection section,
            std::uint16_t /*rank*/) override {
    lane_.push(entry, section);
  }

  void put_back(SchedulerEntry& entry, LockNode* /*entity*/, ReadySection section,
                std::uint16_t /*rank*/) override {
    lane_.put_back(entry, section);
  }

  void remove(SchedulerEntry& entry, LockNode* /*entity*/, std::uint16_t /*rank*/) override {
    lane_.remove(entry);
  }

  [[nodiscard]] std::size_t count_ahead(const SchedulerEntry& entry, LockNode* /*entity*/,
                                        std::uint16_t /*rank*/, std::size_t most) override {
    return lane_.count_ahead(entry, most);
  }

  [[nodiscard]] std::size_t first_class() const override { return 0; }

  std::size_t take(std::span<SchedulerEntry*> run) override {
    std::size_t taken = 0;
    while (taken < run.size() && !lane_.empty()) run[taken++] = &lane_.pop(bounded_wait_);
    return taken;
  }
  std::size_t take_top(std::span<SchedulerEntry*> run) override { return take(run); }

 private:
  const std::uint32_t bounded_wait_;
  ReadyLane lane_;
};

}  // namespace

SimpleProcedureScheduler::SimpleProcedureScheduler(const Clock& clock,
                                                   SimpleSchedulerOptions options)
    : LockingScheduler(std::make_unique<OneLane>(options.bounded_wait), clock) {}

}  // namespace pv2
