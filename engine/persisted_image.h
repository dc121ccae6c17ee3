// SPDX-License-Identifier: Apache-2.0
//
// PersistedImage: what an executor knows of everything that it has made durable, field by field and
// in words. It is how pv2::testing tells what a restart finds from what was there before the crash:
// the image of the engine that ended has to be the image of the one that loaded its store. The
// fields are listed here and nowhere else; what they are made of is the codec's and the reader's.
// For tests: it copies all there is.
//
// Not in it, because it is volatile by design (docs/crash-safety.md):
//   phase, object, slots, wanted signals, epoch    what a step awaits; the step runs again
//   timed_out, wake_pending                        told to the next run, or found again
//   started, the turns of a rollback               planned anew, and then perhaps more of them
//   unfinished_children                            counted anew
//   numbers of messages to come, abort_accepted    of messages that are on their way
//   waiters, listeners, places in queues           their callers ask again
//   next id                                        skips; only never back (next_id)

#pragma once

#include <pv2/base/ids.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pv2 {

class ProcedureExecutor;

/// One persisted field, in words. "": there is none.
struct PersistedField {
  std::string_view name;
  std::string value;
  /// What fails together decides on it too: whoever is to be undone has failed, whatever its own
  /// record says.
  bool by_tree = false;
  bool by_wait = false;  ///< A wait that makes no record changes it.
};

/// What is persisted of one procedure.
struct PersistedProcedure {
  ProcedureId id;
  ProcedureId root;
  std::string type;
  std::vector<PersistedField> fields;  ///< The same ones, in the same order, of every procedure.
  /// Its tree has failed, and a restart decides now what is undone of it, where this engine has yet
  /// to (steps of it run) or had decided before the failure became one of more than that (it is
  /// parked beyond a point of no return). So fields `by_tree` may say something else after it.
  bool decided_at_restart = false;
  /// Its domain is undone, and nothing of it itself is left to undo: if it holds locks, a record
  /// that gives them back is on its way, and a restart may have made that durable already.
  bool has_nothing_left = false;
  /// It waits without a record (docs/decisions/0006): a restart finds, in fields `by_wait`, what
  /// was before, and the step runs again from there.
  bool ahead_of_record = false;
};

/// A value: it stays as it is when the executor is gone.
struct PersistedImage {
  std::vector<PersistedProcedure> live;   ///< What is durable of it, in order of id.
  std::vector<PersistedProcedure> ended;  ///< Roots whose results are in memory, in order of id.
  std::vector<PersistedField> limits;     ///< set_limit(): one per key. `name` is "limit".
  std::uint64_t next_id = 0;              ///< No id at or above it was issued.

  /// Of an executor that was opened. Between two runs of run_until_idle(), if it has no workers.
  [[nodiscard]] static PersistedImage of(const ProcedureExecutor& executor);
  /// Of a root that has ended: from memory or, if it is not there, from the store. Without fields
  /// if it is nowhere.
  [[nodiscard]] static PersistedProcedure of_ended(const ProcedureExecutor& executor,
                                                   ProcedureId id);
};

}  // namespace pv2
