// SPDX-License-Identifier: Apache-2.0
//
// How much a caller or a step may hand in, all in one place; docs/operations.md has the same
// numbers. Input beyond its bound is refused with an error that names it, before anything is
// reserved or written, and the engine goes on; strings marked "cut" are cut instead. Why these
// numbers: no honest use comes near them, and the largest of each kind fits a record and a log
// line. Bounds that the host chooses are in ExecutorOptions; the bound of a lock set is
// LockSet::kMaxRequests.

#pragma once

#include <cstddef>
#include <cstdint>

namespace pv2::limits {

// Strings that a caller gives.
inline constexpr std::size_t kOwnerBytes = 1024;      ///< SubmitOptions::owner.
inline constexpr std::size_t kKeyNameBytes = 4096;    ///< ResourceKey::name, wherever used.
inline constexpr std::size_t kTypeNameBytes = 256;    ///< kType.
inline constexpr std::size_t kSignalNameBytes = 256;  ///< At least 1.
inline constexpr std::size_t kRowKeyBytes = 4096;     ///< Of a host row's key, and of a prefix.
inline constexpr std::size_t kWhoBytes = 256;         ///< Who asks, in aborts and orders; cut.
inline constexpr std::size_t kWhyBytes = 1024;        ///< Why, in aborts and orders; cut.
inline constexpr std::size_t kErrorBytes = 2048;      ///< The message of a step's error; cut.
inline constexpr std::size_t kChoreNameBytes = 256;   ///< Cut.

// Counts of a step. A record has at most 65 536 rows, one of them of the step itself; a child or
// root takes two to three of the others.
inline constexpr std::size_t kSpawnsPerStep = 32'767;
inline constexpr std::size_t kSubmitsPerStep = 21'845;
inline constexpr std::size_t kAwaitsPerStep = 16'384;  ///< Events, completions; signals looked for.
inline constexpr std::size_t kUndoEntries = 1024;      ///< In one procedure; repeats count once.

/// The fields or the result of one procedure, whatever its store takes in a batch: lengths are
/// counted in 32 bits, and all of it is copied a few times.
inline constexpr std::size_t kRecordBytes = std::size_t{256} << 20;

/// Keys and types that have a limit at the same time: they are in memory, and open() reads each of
/// them.
inline constexpr std::size_t kLimitedKeys = 1024;

// Of ExecutorOptions.
inline constexpr unsigned kThreads = 1024;        ///< `workers`, `pool_threads`: each.
inline constexpr std::size_t kRowBindings = 256;  ///< They are looked through one by one.

/// What a store that keeps records has to take in one batch: the largest record of the engine
/// itself, which no step can avoid.
inline constexpr std::size_t kBatchBytesMin = std::size_t{32} << 10;
inline constexpr std::size_t kBatchOperationsMin = 8;
/// A step's record leaves this much of a batch free: a later record of the same procedure repeats
/// it and adds errors, flags, and the two audit rows of an order (step_run.cc adds them up).
inline constexpr std::size_t kLaterRecordBytes = std::size_t{8} << 10;

}  // namespace pv2::limits
