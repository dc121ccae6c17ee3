// SPDX-License-Identifier: Apache-2.0
//
// SimulationRun: one run of a story over the lives of one machine. It makes the moves, and after
// each move it checks what must hold for all procedures. Then it lets everything come to its end.
// It stops at the first finding.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "choosing_scheduler.h"
#include "pv2/testing/findings.h"
#include "pv2/testing/simulation.h"
#include "simulated_store.h"
#include "simulation_move.h"

namespace pv2::testing {

/// Owned by one thread.
class SimulationRun {
 public:
  SimulationRun(const MakeSimulation& make, std::uint64_t seed);
  ~SimulationRun();
  SimulationRun(const SimulationRun&) = delete;
  SimulationRun& operator=(const SimulationRun&) = delete;

  [[nodiscard]] SimulationStory& story() noexcept { return *story_; }
  /// To be called once.
  void run(std::span<const SimulationMove> moves);

  [[nodiscard]] const Findings& findings() const noexcept { return findings_; }
  /// When it was found: the move, or what followed.
  [[nodiscard]] const std::string& moment() const noexcept { return moment_; }
  [[nodiscard]] std::size_t lives() const noexcept { return lives_; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

 private:
  /// What was seen of a procedure; this stays the same in every life.
  struct Identity {
    std::string type;
    ProcedureId parent;
    ProcedureId root;
    bool failed = false;
  };

  void open();
  void listen();
  void leave();
  void make(const SimulationMove& move);
  void run_steps(std::size_t count, std::uint64_t choices);
  void stop_in_the_middle(std::size_t moments, std::uint64_t choices);
  void begin_to_stop();
  void settle(std::uint64_t choices);
  void answer(std::uint64_t choices);
  void crash(std::size_t unheard);
  void meanwhile();
  void wind_up();
  void check();
  void check_state();
  void check_locks();
  void check_sections();
  void check_no_locks_left();
  void check_expiry();
  void compare_with_reload();
  [[nodiscard]] ExecutorOptions options();
  [[nodiscard]] bool quiet() const;

  const std::uint64_t seed_;
  std::unique_ptr<SimulationStory> story_;
  ProcedureRegistry types_;
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
  StoreLimits limits_ = MemoryStoreOptions().limits;
  SimulatedStore* store_ = nullptr;         // in executor_
  ChoosingScheduler* scheduler_ = nullptr;  // in executor_
  Subscription news_;                       // of executor_
  std::unique_ptr<ProcedureExecutor> executor_;
  Random between_{0};  // what comes between, in this move
  bool disturbed_ = false;
  int depth_ = 0;
  std::size_t moments_ = 0;
  std::size_t stop_after_ = 0;  // stop() is called at this moment; 0: at none
  std::size_t lives_ = 0;
  std::uint64_t steps_ = 0;
  std::map<std::uint64_t, Identity> seen_;
  std::set<std::uint64_t> ended_roots_;  // roots whose end a listener was told of, in any life
  Findings findings_;
  std::string moment_ = "at the beginning";
};

}  // namespace pv2::testing
