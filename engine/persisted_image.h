// SPDX-License-Identifier: Apache-2.0
//
// PersistedImage: everything that an executor knows and has made durable, field by field and in
// words. pv2::testing compares two of them over a restart: that of the engine that ended, and that
// of the engine that loaded its store, which have to be the same. The fields are listed here and
// nowhere else; codecs and RecordReader decide how they are stored. For tests: it copies
// everything.
//
// Not in it, because it is volatile by design (docs/crash-safety.md):
//   phase, object, slots, wanted signals, epoch    what a step awaits; the step runs again
//   timed_out, wake_pending                        told to the next run, or found again
//   started, the turns of a rollback               planned again, perhaps with more turns
//   unfinished_children                            counted again
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
  /// The failure domain decides it too: a member that is to be undone has failed, whatever its own
  /// record says.
  bool by_tree = false;
  bool by_wait = false;  ///< A wait without a record changes it.
};

/// What is persisted of one procedure.
struct PersistedProcedure {
  ProcedureId id;
  ProcedureId root;
  std::string type;
  std::vector<PersistedField> fields;  ///< The same fields in the same order for every procedure.
  /// Its tree has failed, and a restart decides now which of its steps are undone. This engine has
  /// yet to decide, because steps of the tree run; or it decided before a wider domain failed, and
  /// the tree is parked beyond a point of no return. So fields `by_tree` may differ after a
  /// restart.
  bool decided_at_restart = false;
  /// Its domain is undone, and it has no step left to undo. If it holds locks, a record that gives
  /// them back is on its way, and may be durable before the restart.
  bool has_nothing_left = false;
  /// It waits without a record (docs/decisions/0006). A restart finds the earlier values of fields
  /// `by_wait`, and the step runs again from there.
  bool ahead_of_record = false;
};

/// A value: it stays as it is when the executor is gone.
struct PersistedImage {
  std::vector<PersistedProcedure> live;   ///< Procedures that are live and durable, by id.
  std::vector<PersistedProcedure> ended;  ///< Roots whose results are in memory, by id.
  std::vector<PersistedField> limits;     ///< set_limit(): one per key. `name` is "limit".
  std::uint64_t next_id = 0;              ///< No id at or above it was issued.

  /// The image of an executor that was opened. Without workers, not during run_until_idle().
  [[nodiscard]] static PersistedImage of(const ProcedureExecutor& executor);
  /// The image of a root that has ended, from memory or otherwise from the store. Without fields if
  /// neither has it.
  [[nodiscard]] static PersistedProcedure of_ended(const ProcedureExecutor& executor,
                                                   ProcedureId id);
};

}  // namespace pv2
