// SPDX-License-Identifier: Apache-2.0
//
// What listings show of a procedure, and what a caller may ask for. Plain data, taken from the last
// durable record, never from an object that a worker is changing.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/procedure_state.h>
#include <pv2/base/resource.h>
#include <pv2/base/status.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pv2/engine/outcome.h"

namespace pv2 {

/// One entry of a procedure's history: a step that ended (the last 8 are kept in its record).
struct HistoryEntry {
  std::uint32_t step = 0;  ///< 0 in an undo: see is_of_locks().
  std::uint32_t attempt = 0;
  Outcome::Kind outcome = Outcome::Kind::kNext;
  WallTime at{};
  bool undo = false;  ///< The step was being undone. Entries of older versions do not say so.

  /// Whether it is of no step: the procedure has taken its locks again (kUndone), or could not, so
  /// that what it has spawned is undone under them.
  [[nodiscard]] bool is_of_locks() const noexcept { return undo && step == 0; }
};

/// A live procedure as of its last durable record.
struct ProcedureInfo {
  ProcedureId id;
  ProcedureId parent;
  ProcedureId root;
  std::string type;
  std::string owner;
  ProcedureState state = ProcedureState::kRunnable;
  /// The step to run next, or the one that failed; if that is being undone, or nothing of the
  /// procedure is left to run, the step to be undone next.
  std::uint32_t step = 0;
  std::string step_name;
  bool undo = false;  ///< `step` is the step to be undone.
  std::uint32_t attempt = 1;
  /// Neither finished nor undone: it, or its tree, waits for an operator. `error` says why.
  bool parked = false;
  bool quarantined = false;  ///< This program cannot understand its record. `error` says why.
  bool holds_locks = false;
  LockSet locks;
  /// Why it is parked; or why it, or its tree, failed. If its tree is parked in the undo of another
  /// member: the failure, if there is one here, then which member that is, and why.
  Status error;
  Status undo_error;  ///< While its undo is in back-off: why the last attempt at it failed.
  WallTime submitted{};
  WallTime updated{};  ///< When its last record was made.
  std::vector<HistoryEntry> history;
  /// While it waits for the children that a step has spawned: how many of them have ended, and how
  /// many there are. Otherwise 0.
  std::size_t children_done = 0;
  std::size_t children_total = 0;
  /// How far it is, in words: "7 of 64 regions" for those children. If its fields were asked for,
  /// what Procedure::progress() says follows.
  std::string progress;
  /// Its fields as JSON, decoded from the record; empty unless they were asked for.
  std::string fields;
  /// Why `fields` is empty although they were asked for.
  Status fields_error;
};

/// A procedure whose engine part open() could not read, and which open() set aside
/// (UnreadableRecords::kSetAside). Its rows lie in the store as they were found.
struct UnreadableRecord {
  ProcedureId id;  ///< None (0) if not even the key of the row tells it.
  Status why;      ///< What is wrong, and in which row.
  /// If the header could be read: the type, the root of its tree, and the locks that it may have
  /// held; no procedure holds them for it. Otherwise empty.
  std::string type;
  ProcedureId root;
  LockSet locks;
};

/// Which procedures a listing shows: those that match every member that is set.
struct ListFilter {
  std::optional<ProcedureState> state{};
  std::string type{};
  std::string owner{};
  /// This root and all its descendants.
  ProcedureId root{};
  /// True: roots only. False: spawned procedures only.
  std::optional<bool> is_root{};
  /// Procedures whose lock set has this key, held or wanted.
  std::optional<ResourceKey> entity{};
  /// Submitted at least this long ago.
  std::optional<Duration> older_than{};
  std::optional<bool> parked{};
  std::optional<bool> quarantined{};
  /// Fills ProcedureInfo::fields and asks for Procedure::progress(), for which it makes an object
  /// of the user's class per procedure.
  bool with_fields = false;
};

/// One page of a listing.
struct ProcedurePage {
  std::vector<ProcedureInfo> procedures;  ///< In order of id.
  /// Ask for the next page after this id; none (0) when there are no more. A full page may be the
  /// last one: then the next one is empty. For a limit of 0 it is the id that was asked for.
  ProcedureId next;
};

/// A step that a worker is running, or work that a step has offloaded.
struct RunningProcedure {
  ProcedureId id;
  std::string type;
  std::uint32_t step = 0;
  std::string step_name;
  bool undo = false;
  WallTime since{};
  Duration age{};
  enum class Kind : std::uint8_t {
    kStep = 1,
    kOffloaded = 2,  ///< Work that the step has offloaded; it has a thread of the pool.
  };
  Kind kind = Kind::kStep;
  /// For offloaded work: how long ago it last reported progress, if it ever did.
  std::optional<Duration> heartbeat{};
};

/// How many procedures of one type there have been in this run, children included.
struct TypeCounts {
  std::string type;
  std::uint64_t submitted = 0;  ///< Submitted or spawned, and durable.
  /// Counted once each, when no rollback can concern them any more: when their tree has ended, or
  /// before that if they had nothing to undo.
  std::uint64_t succeeded = 0;
  std::uint64_t undone = 0;  ///< Counted once each, too, even if they never began.
};

}  // namespace pv2
