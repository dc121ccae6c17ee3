// SPDX-License-Identifier: Apache-2.0
//
// ExecutorOptions: the parts of an executor and its policies. All but the store and the registry
// have defaults; a program sets what it wants to change. ProcedureExecutor::open() checks them.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/log.h>
#include <pv2/base/resource.h>
#include <pv2/base/status.h>
#include <pv2/scheduler/procedure_scheduler.h>
#include <pv2/store/procedure_store.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pv2/engine/procedure_info.h"
#include "pv2/engine/procedure_registry.h"
#include "pv2/engine/retention_policy.h"

namespace pv2 {

/// How long a step that answers retry() waits before its next attempt.
struct RetryPolicy {
  Duration base = std::chrono::seconds(1);  ///< Before the second attempt; doubles each time.
  Duration cap = std::chrono::minutes(10);  ///< Never more than this.
  /// Up to this much is added, so that the retries of a herd spread. At most 100.
  std::uint32_t jitter_percent = 10;
  /// A step that has failed this often (retry(), unsure()) parks its procedure, until an operator
  /// has it tried again, skips it, or has the tree undone. 0: never. The class (kMaxAttempts) and
  /// the row of the step table take precedence.
  std::uint32_t max_attempts = 0;
  /// An undo that has failed this often parks its tree: after a bit more than an hour with the
  /// defaults. If making an object from its record fails this often, in a row and in one run (a
  /// constructor or fields() throws), its procedure is parked too.
  std::uint32_t undo_attempts = 16;
};

/// What happens to procedures that wait for each other in a cycle.
enum class DeadlockPolicy : std::uint8_t {
  kReport,  ///< Logged and listed by Inspection::deadlocks(); the procedures wait until an
            ///< operator acts.
  /// The cycle is logged, and of its trees that can be undone the one with the highest root id
  /// fails. If none can, a member that waits to be undone is parked, with an error that names the
  /// cycle; if no member is being undone, a waiting member of the youngest tree is parked.
  kFailYoungest,
};

/// A lock key guards the host rows whose key begins with `prefix`.
struct RowBinding {
  std::string prefix;
  ResourceKey key;
};

/// What open() does with a procedure when it cannot read the engine's own part of its records: its
/// id, its tree, where it is, what it holds. (If only the user's part is unreadable, or a type
/// unknown, the tree is quarantined, whatever is chosen here.)
enum class UnreadableRecords : std::uint8_t {
  kRefuse,  ///< open() fails and names it; nothing is changed. Restore a backup.
  /// The last resort: open() goes on without the procedure. It does not run, its rows stay as they
  /// are, its id is not issued again, and a submission with its nonce still gets that id. Every
  /// procedure that is seen to belong to its tree is quarantined, locks included. But the locks of
  /// the procedure itself are free, and a tree that is not seen to be its tree goes on without it.
  /// Each such procedure is logged as an error and listed by Inspection::unreadable(). A later
  /// open() may choose differently.
  kSetAside,
};

/// When ProcedureExecutor::open() returns.
enum class Load : std::uint8_t {
  /// When everything that the store has is loaded. A store that cannot be loaded is refused.
  kBeforeOpenReturns,
  /// When the store is known to be ours and was written to; a thread of the executor loads the
  /// rest. Meanwhile submissions are accepted: they are durable, and find what was submitted with
  /// their nonce before. Nothing runs. A call about another procedure, and Inspection, wait until
  /// everything is loaded. If the store cannot be loaded, the executor accepts nothing more, as if
  /// the store had failed: wait_until_loaded(), health() and on_store_failure say why. What it has
  /// accepted by then is in the store, so a backup of before does not have it. If a program with
  /// other fields() has written the store, everything is loaded before open() returns. See
  /// docs/operations.md, "Loading in the background".
  kInBackground,
};

/// Everything an executor is made of. `store` and `registry` are required.
struct ExecutorOptions {
  std::unique_ptr<ProcedureStore> store;
  ProcedureRegistry registry;
  /// MasterProcedureScheduler unless given.
  std::unique_ptr<ProcedureScheduler> scheduler{};
  /// Threads that run steps. 0: none; the host's thread runs everything in run_until_idle().
  unsigned workers = 2;
  /// This many of the workers run only work of the scheduler's top classes, and what the top
  /// classes wait for: such work finds a thread however much other work runs. Fewer than `workers`.
  unsigned reserved_workers = 0;
  /// kFailYoungest: otherwise procedures that wait in a cycle would wait for ever.
  DeadlockPolicy deadlock_policy = DeadlockPolicy::kFailYoungest;
  /// Threads for offloaded work and chores; callbacks use all but one of them. There are two more
  /// threads, one only for callbacks and one only for listeners. So callbacks, listeners, and work
  /// with chores each go on while the others block. With workers = 0 all of it runs in
  /// run_until_idle().
  unsigned pool_threads = 4;
  /// The system's clock unless given. Shared because the host goes on using it.
  std::shared_ptr<Clock> clock{};
  /// Seeds the jitter and StepContext::random().
  std::uint64_t seed = 0x5eed;
  RetryPolicy retry{};
  /// Submissions beyond this number of live procedures are refused (kResourceExhausted). 10 million
  /// take about 7 GB. A finished child that is kept in memory, because its tree may still have to
  /// undo it, counts as live too.
  std::size_t max_live_procedures = 10'000'000;
  /// Finished results kept in memory. Older ones are read from the store or, with a store that
  /// keeps no records, forgotten.
  std::size_t max_results_in_memory = 100'000;
  /// Like max_results_in_memory, in bytes, about. The newest result stays in memory however large
  /// it is.
  std::size_t max_result_bytes_in_memory = std::size_t{64} << 20;
  /// For results in the store and in memory.
  RetentionPolicy retention{};
  /// A step that changes a host row with such a prefix (the longest counts) without holding the key
  /// exclusively, itself or through an ancestor, fails before anything is written.
  std::vector<RowBinding> row_bindings{};
  /// A step that has run this long is reported once: logged, and given to `on_stuck`. So is
  /// offloaded work, and again if it is silent this long after a heartbeat. 0: never. 10 seconds: a
  /// step must not block, so this is a thousand times what the slowest should take.
  Duration stuck_after = std::chrono::seconds(10);
  /// Called on a pool thread for each step, or piece of offloaded work, that is reported. What it
  /// throws is dropped.
  std::function<void(const RunningProcedure&)> on_stuck{};
  /// kInBackground needs workers. A million live procedures take seconds to load.
  Load load = Load::kBeforeOpenReturns;
  UnreadableRecords unreadable = UnreadableRecords::kRefuse;
  /// Names of types of which live procedures may have been written by a program in which a number
  /// of fields() meant something else: another kind or unit, state instead of an argument. If such
  /// a type is not named here, open() refuses (kFailedPrecondition, and the message says both
  /// meanings), because the bytes would silently be read as another value. If it is named, the
  /// bytes are read as this program means them. Adding, removing and renaming fields, and what
  /// docs/fields.md allows, needs none of this.
  std::vector<std::string> accept_field_changes{};
  /// Bounds on the signals that one procedure has not consumed: their number, and the bytes of
  /// their names and payloads. A signal beyond them is refused (kResourceExhausted).
  std::size_t max_signals = 1024;
  std::size_t max_signal_bytes = std::size_t{1} << 20;
  LogSink log = default_log_sink();
  /// Called once, on a pool thread, when the store fails. The executor has stopped accepting work
  /// by then. What it throws is dropped.
  std::function<void(const Status&)> on_store_failure{};
};

}  // namespace pv2
