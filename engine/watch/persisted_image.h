// SPDX-License-Identifier: Apache-2.0
//
// PersistedImage: everything that an executor has made durable, field by field and in words.
// pv2::testing compares the image of the engine that ended with the image of the engine that loaded
// its store: they have to be equal. The fields are listed here and nowhere else; how they are
// encoded and read is up to the codec and the reader. For tests: it copies all there is.
//
// Not in it, because it is volatile by design (docs/crash-safety.md):
//
//     phase, object, slots, wanted signals, epoch    what a step awaits; the step runs again
//     timed_out, interrupted_due, wake_pending       told to the next run, or found again
//     started, the turns of a rollback               planned again, perhaps with more turns
//     Children::unfinished, joined                   counted again
//     numbers of messages to come, abort_accepted    of messages that are on their way
//     waiters, listeners, places in queues           their callers ask again
//     next id                                        may skip ids, but never goes back (next_id)

#pragma once

#include <pv2/base/ids.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pv2 {

class ProcedureExecutor;
struct EngineCore;

/// One persisted field, in words. An empty value: the procedure does not have it.
struct PersistedField {
  std::string_view name;
  std::string value;
  /// Its failure domain decides its value too: a member that is to be undone has failed, whatever
  /// its own record says.
  bool by_tree = false;
  bool by_wait = false;  ///< A wait without a record changes it.
};

/// What is persisted of one procedure.
struct PersistedProcedure {
  ProcedureId id;
  ProcedureId root;
  std::string type;
  std::vector<PersistedField> fields;  ///< In the same order for every procedure.
  /// Its tree has failed, and a restart decides again what of it is undone. This engine has not
  /// decided yet (steps of it run), or it decided before the failure reached a wider domain (it is
  /// parked beyond a point of no return). So fields `by_tree` may differ after a restart.
  bool decided_at_restart = false;
  /// Its domain is being undone, and the member itself has nothing left to undo. If it holds locks,
  /// a record that releases them is on its way; a restart may have made that durable already.
  bool has_nothing_left = false;
  bool is_failed = false;  ///< Its tree has failed; nothing of it goes on.
  /// It waits without a record (docs/decisions/0006). After a restart its fields `by_wait` are
  /// those from before the wait, and the step runs again.
  bool ahead_of_record = false;
};

/// A value: it stays valid when the executor is gone.
struct PersistedImage {
  std::vector<PersistedProcedure> live;   ///< Those that have a durable record, in order of id.
  std::vector<PersistedProcedure> ended;  ///< Roots whose results are in memory, in order of id.
  std::vector<PersistedField> limits;     ///< set_limit(): one per key. `name` is "limit".
  std::uint64_t next_id = 0;              ///< Only lower ids were issued.

  /// The image of an executor that was opened. Without workers, call it between two runs of
  /// run_until_idle().
  [[nodiscard]] static PersistedImage of(const ProcedureExecutor& executor);
  [[nodiscard]] static PersistedImage of(EngineCore& core);
  /// The image of a root that has ended, from memory or else from the store. Without fields if
  /// neither has it.
  [[nodiscard]] static PersistedProcedure of_ended(const ProcedureExecutor& executor,
                                                   ProcedureId id);
  [[nodiscard]] static PersistedProcedure of_ended(EngineCore& core, ProcedureId id);
};

}  // namespace pv2
