// SPDX-License-Identifier: Apache-2.0
//
// The seeded simulation: the real engine, its scheduler and a memory store on one thread, under a
// manual clock. A seed decides everything else: which procedure's step runs next, when commits
// become durable, when awaited answers arrive, how time moves, what clients do and when, where the
// store fails and where the machine crashes. After every move it checks what must hold for all
// procedures, and asks the story to check what must hold for its own. A failure depends only on its
// seed; it is shrunk (moves are left out while it still fails) and reported in words.
//
// It finds faults that depend on the order of events. It finds no data races, because nothing runs
// at the same time, and no faults of other stores, because the store is the memory store.

#pragma once

#include <pv2/engine/executor_options.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/store/procedure_store.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "pv2/testing/findings.h"

namespace pv2 {
class MemoryDisk;
}

namespace pv2::testing {

/// How a simulation ended.
struct SimulationEnd {
  ProcedureExecutor& executor;
  ProcedureStore& store;
  std::size_t lives;  ///< How many there were; each but the last ended in a crash or a stop.
  Findings& findings;
};

/// What is simulated: procedures, the world that they act on, and clients. One is made for every
/// run, from the seed alone; what it holds outlives all crashes of that run. All calls come from
/// one thread.
class SimulationStory {
 public:
  SimulationStory() = default;
  virtual ~SimulationStory() = default;
  SimulationStory(const SimulationStory&) = delete;
  SimulationStory& operator=(const SimulationStory&) = delete;

  virtual void add_types(ProcedureRegistry& types) = 0;
  /// Changes the defaults of an executor (retries, limits), but not store, clock or threads.
  virtual void configure(ExecutorOptions& /*options*/) {}

  /// Called once, before the first life: what happened before the simulation begins, and is on its
  /// disk. The story may run an executor of its own there, and has to close it.
  virtual void furnish(const std::shared_ptr<MemoryDisk>& /*disk*/) {}

  /// How many things clients and operators do, each at most once: the simulation decides when, and
  /// leaves some out. A blocking verb makes everything durable that waits; with asynchronous ones
  /// the simulation decides that.
  [[nodiscard]] virtual std::size_t operations() const = 0;
  [[nodiscard]] virtual std::string operation_words(std::size_t index) const = 0;
  virtual void operate(std::size_t index, ProcedureExecutor& executor) = 0;
  /// Called in the middle of something else: another thread may call an asynchronous verb here.
  virtual void interfere(std::uint64_t /*choices*/, ProcedureExecutor& /*executor*/) {}
  /// A life begins: clients ask again for what they have not seen answered.
  virtual void begin_life(ProcedureExecutor& /*executor*/) {}
  /// The executor is being stopped; from now on no step may begin in this life.
  virtual void stop_begins() {}
  /// Called near the end, whenever nothing moves: from now on nothing crashes, and time passes.
  /// Clients repeat what was refused. True if something was done.
  virtual bool wind_up(ProcedureExecutor& /*executor*/) { return false; }

  /// How many things outside the engine could answer now, and the answer of one of them.
  [[nodiscard]] virtual std::size_t answers_due() const { return 0; }
  virtual void answer(std::size_t /*which*/) {}

  /// Called after every move.
  virtual void check(ProcedureExecutor& /*executor*/, Findings& /*findings*/) {}
  /// Called when nothing moves any more, except what waits for ever.
  virtual void check_end(SimulationEnd& end) = 0;
  /// Whether a procedure may stay live for ever (a parked one, for example).
  [[nodiscard]] virtual bool may_stay(const ProcedureInfo& info) const { return info.parked; }
  /// Whether a procedure that had failed may go on, because an operator has ordered it.
  [[nodiscard]] virtual bool may_be_repaired(const ProcedureInfo& /*info*/) const { return false; }

 protected:
  /// To be called by procedures wherever another thread could come between. Before it returns,
  /// other procedures' steps may run, records may become durable, and answers may arrive.
  void meanwhile() {
    if (meanwhile_) meanwhile_();
  }

 private:
  friend class SimulationRun;
  std::function<void()> meanwhile_;
};

using MakeSimulation = std::function<std::unique_ptr<SimulationStory>(std::uint64_t seed)>;

/// Which seeds, and how long.
struct SimulationOptions {
  std::uint64_t first_seed = 1;
  std::uint64_t seeds = 1;
  /// Stops after this much processor time, whatever is left of the seeds.
  std::optional<std::chrono::seconds> budget{};
  /// Runs in child processes (fork), so that a broken invariant of the engine, which aborts, or a
  /// run that does not end, is a failure like any other. The calling process must have only one
  /// thread then.
  bool isolated = true;
};

/// What was found.
struct SimulationReport {
  std::uint64_t seeds = 0;  ///< How many were run to their end.
  std::uint64_t moves = 0;
  std::uint64_t steps = 0;
  std::uint64_t lives = 0;
  /// The first failure: its seed, what is wrong, and the moves that lead to it. Empty if there is
  /// none.
  std::string failure{};
  std::uint64_t failing_seed = 0;

  [[nodiscard]] bool ok() const noexcept { return failure.empty(); }
};

/// Runs until the seeds or the budget end, or something is found. Each seed is run in a child
/// process, and SIGCHLD has its default action meanwhile.
[[nodiscard]] SimulationReport simulate(const MakeSimulation& make,
                                        const SimulationOptions& options);

}  // namespace pv2::testing
