// SPDX-License-Identifier: Apache-2.0
//
// The load for the crash tests: jobs of eight kinds (plain, with locks, trees, retries, offloaded
// work, failures) whose only effects are counters in rows of the host, and clients that submit them
// from several threads, repeat themselves, and acknowledge. Everything that a client is told, and
// every run of a step, is reported as an Event at once, so that it is known even if the process
// dies immediately afterwards. What happens to a key depends on its number alone.

#pragma once

#include <pv2/engine/executor_options.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/engine/state_machine_procedure.h>
#include <pv2/store/procedure_store.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace pv2::testing {

/// One thing that happened. Trivially copyable and of one size, because it is written to a pipe in
/// one piece.
struct Event {
  enum class Kind : std::uint32_t {
    kAlive = 1,     ///< A life has begun; nothing was opened yet.
    kOpened,        ///< The store was opened and replayed.
    kSubmits,       ///< A client is about to submit `key`.
    kSubmitted,     ///< ... and was told `id`.
    kRan,           ///< A step or an undo of `key` ran.
    kEnded,         ///< A client was told how `key` ended: `ok` and `text`.
    kAcknowledges,  ///< A client is about to acknowledge `key`.
    kAcknowledged,  ///< ... and was told that it is.
    kAborts,        ///< A client is about to abort `key`.
    kAborted,       ///< ... and was told that the abort is durable.
    kTrouble,       ///< Something that must not happen: `text`.
  };
  Kind kind = Kind::kAlive;
  std::uint32_t ok = 0;
  std::uint64_t key = 0;
  std::uint64_t id = 0;
  std::array<char, 96> text{};

  [[nodiscard]] std::string_view said() const { return text.data(); }
};

/// Takes an event; called from any thread.
using Report = std::function<void(const Event&)>;

[[nodiscard]] Event event(Event::Kind kind, std::uint64_t key, std::uint64_t id = 0,
                          bool ok = false, std::string_view text = {});

/// Whether `key` succeeds if it is not aborted.
[[nodiscard]] bool succeeds(std::uint64_t key);
/// Whether the client that submits `key` aborts it at once.
[[nodiscard]] bool is_aborted_by_its_client(std::uint64_t key);
/// Whether the client that submits `key` acknowledges its result; such a key is never submitted
/// twice.
[[nodiscard]] bool is_acknowledged_by_its_client(std::uint64_t key);
/// How many children the job of `key` has.
[[nodiscard]] std::uint32_t children_of(std::uint64_t key);
/// The table that `key` locks, and whose counter it increments once per step; -1: none.
[[nodiscard]] int table_of(std::uint64_t key);

inline constexpr std::uint32_t kLoadSteps = 3;
inline constexpr int kLoadTables = 3;

/// The row in which a member notes the steps that it has done (a number: one bit for each).
[[nodiscard]] std::string steps_row(std::uint64_t key, std::uint32_t child);
/// The row that counts the steps done on a table.
[[nodiscard]] std::string counter_row(int table);

enum class LoadStep : std::uint32_t { kOne = 1, kTwo, kThree };

/// A job, or, with child != 0, a child of one.
class LoadJob final : public StateMachineProcedure<LoadStep> {
 public:
  static constexpr std::string_view kType = "crash.LoadJob";
  static constexpr auto kSteps =
      steps(step(LoadStep::kOne, "ONE", kUndoable), step(LoadStep::kTwo, "TWO", kUndoable),
            step(LoadStep::kThree, "THREE", kUndoable));

  explicit LoadJob(const Report& report, std::uint64_t key = 0, std::uint32_t child = 0)
      : report_(report), key_(key), child_(child) {}
  void fields(auto& f) {
    f.arg(1, "key", key_);
    f.arg(2, "child", child_);
  }
  LockSet locks() const override;
  Flow execute_from_state(LoadStep step, StepContext& ctx) override;
  Flow rollback_state(LoadStep step, StepContext& ctx) override;

 private:
  void count(LoadStep step, StepContext& ctx, bool forward);

  const Report& report_;
  std::uint64_t key_;
  std::uint32_t child_;
};

/// Keys that clients may submit: those from `first` on. Those below `next` were begun before.
struct KeyRange {
  std::uint64_t first = 1;
  std::uint64_t next = 1;
};

/// An executor for LoadJobs with real threads. `report` must outlive it.
[[nodiscard]] Result<std::unique_ptr<ProcedureExecutor>> open_for_load(
    std::unique_ptr<ProcedureStore> store, const Report& report, unsigned workers = 2,
    Load load = Load::kBeforeOpenReturns);
/// With every other seed the store is loaded while the clients are at work already.
[[nodiscard]] inline Load load_of(std::uint64_t seed) {
  return seed % 2 == 0 ? Load::kBeforeOpenReturns : Load::kInBackground;
}

/// Lets clients on three threads work until the executor refuses them, or `keys_max` new keys were
/// begun. Returns when the clients have stopped.
void run_clients(ProcedureExecutor& executor, const Report& report, KeyRange keys,
                 std::uint64_t seed, std::uint64_t keys_max);

/// Submits `key` as its client does, in the same way in every life.
void submit_key(ProcedureExecutor& executor, const Report& report, std::uint64_t key,
                SubmitCallback done);

}  // namespace pv2::testing
