// SPDX-License-Identifier: Apache-2.0
//
// The seeded simulation: the real engine, its scheduler and a memory store on one thread, under a
// manual clock, where a seed decides everything else: which procedure's step runs next, when what
// was committed becomes durable, when what is awaited arrives, how time moves, what clients do
// when, where the store fails and where the machine crashes. After every move it checks what must
// hold for any procedures, and asks the story for what must hold for its own. A failure is a
// function of its seed; it is shrunk (moves are left out while it still fails) and told in words.
//
// It finds what depends on the order of things. It does not find data races (nothing runs at the
// same time), and nothing in a store of its own (the store is the memory store).

#pragma once

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

namespace pv2::testing {

/// What a simulation has come to.
struct SimulationEnd {
  ProcedureExecutor& executor;
  ProcedureStore& store;
  std::size_t lives;  ///< How many there were; each but the last ended in a crash or a stop.
  Findings& findings;
};

/// What is simulated: procedures, the world they act on, and clients. One is made for every run,
/// from the seed alone; what it holds outlives all crashes of that run. One thread.
class SimulationStory {
 public:
  SimulationStory() = default;
  virtual ~SimulationStory() = default;
  SimulationStory(const SimulationStory&) = delete;
  SimulationStory& operator=(const SimulationStory&) = delete;

  virtual void add_types(ProcedureRegistry& types) = 0;
  /// What differs from the defaults of an executor (retries, limits); not store, clock or threads.
  virtual void configure(ExecutorOptions& /*options*/) {}

  /// Clients and operators do this many things, each at most once: the simulation says when, and
  /// leaves some out. Verbs that block make everything durable that waits; the asynchronous ones
  /// leave that to the simulation.
  [[nodiscard]] virtual std::size_t operations() const = 0;
  [[nodiscard]] virtual std::string operation_words(std::size_t index) const = 0;
  virtual void operate(std::size_t index, ProcedureExecutor& executor) = 0;
  /// In the middle of something else: another thread calls an asynchronous verb, or none.
  virtual void interfere(std::uint64_t /*choices*/, ProcedureExecutor& /*executor*/) {}
  /// A life begins: clients ask again for what they have not seen answered.
  virtual void begin_life(ProcedureExecutor& /*executor*/) {}
  /// The executor is being stopped; no step may begin in this life.
  virtual void stop_begins() {}
  /// The end is near: from now on nothing crashes, and time passes. Asked whenever nothing moves;
  /// clients repeat what was refused. True if something was done.
  virtual bool wind_up(ProcedureExecutor& /*executor*/) { return false; }

  /// How many things outside the engine could answer now, and the answer of one of them.
  [[nodiscard]] virtual std::size_t answers_due() const { return 0; }
  virtual void answer(std::size_t /*which*/) {}

  /// Asked after every move.
  virtual void check(ProcedureExecutor& /*executor*/, Findings& /*findings*/) {}
  /// Nothing moves any more, except what waits for ever.
  virtual void check_end(SimulationEnd& end) = 0;
  /// Whether a procedure may be live for ever (a parked one, say).
  [[nodiscard]] virtual bool may_stay(const ProcedureInfo& info) const { return info.parked; }
  /// Whether a procedure that had failed may go on, because an operator ordered it.
  [[nodiscard]] virtual bool may_be_repaired(const ProcedureInfo& /*info*/) const { return false; }

 protected:
  /// To be called by procedures wherever another thread could come between: other procedures' steps
  /// may run, records may become durable, answers may arrive before it returns.
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
  /// run that does not end, is a failure like any other. The calling process has one thread then.
  bool isolated = true;
};

/// What was found.
struct SimulationReport {
  std::uint64_t seeds = 0;  ///< Run to their end.
  std::uint64_t moves = 0;
  std::uint64_t steps = 0;
  std::uint64_t lives = 0;
  /// The first failure: its seed, what is wrong, and the moves that lead there. Empty: none.
  std::string failure{};
  std::uint64_t failing_seed = 0;

  [[nodiscard]] bool ok() const noexcept { return failure.empty(); }
};

/// Runs until the seeds or the budget end, or something is found.
[[nodiscard]] SimulationReport simulate(const MakeSimulation& make,
                                        const SimulationOptions& options);

}  // namespace pv2::testing
