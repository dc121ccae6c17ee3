// SPDX-License-Identifier: Apache-2.0
//
// ChoosingScheduler: a real scheduler whose polls a simulation decides. Entries that the real
// scheduler hands out may stay in hand for a while, as if a worker were held up between its poll
// and its work, and they leave in any order, as if there were several workers. It runs nothing by
// itself and keeps every other promise of the scheduler inside.

#pragma once

#include <pv2/base/random.h>
#include <pv2/scheduler/procedure_scheduler.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace pv2::testing {

/// Owned by one thread.
class ChoosingScheduler final : public ProcedureScheduler {
 public:
  explicit ChoosingScheduler(std::unique_ptr<ProcedureScheduler> inner)
      : inner_(std::move(inner)) {}

  /// From now on at most `entries` are handed out, chosen by `choices`; at most `in_hand_max` are
  /// held back.
  void allow(std::size_t entries, Random choices, std::size_t in_hand_max) {
    allowed_ = entries;
    choices_ = choices;
    in_hand_max_ = in_hand_max;
  }
  [[nodiscard]] std::size_t in_hand() const noexcept { return in_hand_.size(); }

  // ProcedureScheduler
  using ProcedureScheduler::admit;
  void admit(EntryList&& batch) override { inner_->admit(std::move(batch)); }
  [[nodiscard]] bool contended(const SchedulerEntry& entry) const override {
    return inner_->contended(entry);
  }
  std::vector<NotRestored> restore(EntryList&& batch) override {
    return inner_->restore(std::move(batch));
  }
  using ProcedureScheduler::settle;
  std::size_t settle(EntryList&& batch, SchedulerCaller caller) override {
    return inner_->settle(std::move(batch), caller);
  }
  using ProcedureScheduler::poll;
  std::size_t poll(std::span<SchedulerEntry*> run, std::chrono::milliseconds patience,
                   SchedulerCaller caller) override;
  std::size_t poll_top(std::span<SchedulerEntry*> run,
                       std::chrono::milliseconds patience) override {
    return poll(run, patience);
  }
  bool withdraw(SchedulerEntry& entry) override { return inner_->withdraw(entry); }
  void wake_for_ready() override { inner_->wake_for_ready(); }
  void nudge() override { inner_->nudge(); }
  void nudge_top() override { inner_->nudge_top(); }
  [[nodiscard]] std::uint64_t lifts() const noexcept override { return inner_->lifts(); }
  [[nodiscard]] bool is_overtaken(const SchedulerEntry& polled,
                                  std::uint64_t lifts_then) const noexcept override {
    return inner_->is_overtaken(polled, lifts_then);
  }
  [[nodiscard]] bool has_ready() const noexcept override { return inner_->has_ready(); }
  [[nodiscard]] bool has_top_classes() const noexcept override { return inner_->has_top_classes(); }
  [[nodiscard]] bool is_top_work(const SchedulerEntry& polled) const noexcept override {
    return inner_->is_top_work(polled);
  }
  void stop() override { inner_->stop(); }
  void set_limit(const ResourceKey& key, std::optional<std::uint32_t> limit) override {
    inner_->set_limit(key, limit);
  }
  void report_wait(SchedulerEntry& waiter, SchedulerEntry& producer, WaitLink::Why why) override {
    inner_->report_wait(waiter, producer, why);
  }
  void end_reported_wait(SchedulerEntry& waiter) override { inner_->end_reported_wait(waiter); }
  [[nodiscard]] bool suspects_cycles() const noexcept override { return inner_->suspects_cycles(); }
  void search_cycles() override { inner_->search_cycles(); }
  [[nodiscard]] bool has_new_cycles() const noexcept override { return inner_->has_new_cycles(); }
  [[nodiscard]] std::vector<WaitCycle> take_new_cycles() override {
    return inner_->take_new_cycles();
  }
  [[nodiscard]] std::vector<WaitCycle> cycles() const override { return inner_->cycles(); }
  [[nodiscard]] std::vector<LockInfo> locks() const override { return inner_->locks(); }
  [[nodiscard]] QueuePlace place_of(const SchedulerEntry& entry,
                                    std::size_t count_max) const override {
    return inner_->place_of(entry, count_max);
  }

 private:
  std::unique_ptr<ProcedureScheduler> inner_;
  std::vector<SchedulerEntry*> in_hand_;
  std::size_t allowed_ = 0;
  std::size_t in_hand_max_ = 0;
  Random choices_{0};
};

}  // namespace pv2::testing
