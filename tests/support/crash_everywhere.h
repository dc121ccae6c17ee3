// SPDX-License-Identifier: Apache-2.0
//
// crash_everywhere: plays a story once to count its store commits, then again for every commit,
// with the machine crashing right before or right after it; opens the store again, lets the story
// finish, and has it check its end. It can also crash the recovery, and on LevelDB cut the power at
// every operation of the file system. Without a crash it compares, after each turn, what is listed
// with what another executor finds on a copy of the disk. Whatever goes wrong fails the Catch2
// test, with the crash points in words; a story that does not end is such a failure.

#pragma once

#include <pv2/engine/procedure_executor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pv2/store/procedure_store.h"

namespace pv2::testing {

/// A workload with its clients and the world it acts on; a new one is made for every play. What it
/// holds outlives every crash of that play. All calls come from one thread.
class CrashStory {
 public:
  virtual ~CrashStory() = default;
  virtual void add_types(ProcedureRegistry& registry) = 0;
  /// A life begins: clients submit what they have not seen accepted, with the nonces of before, and
  /// ask for results. With the asynchronous verbs only: the life may end at any commit.
  virtual void begin_life(ProcedureExecutor& executor) = 0;
  /// Nothing moves but time. What lies outside the engine answers now; true if something did.
  virtual bool stir(ProcedureExecutor& /*executor*/) { return false; }
  /// Everything has ended, after `crashes` crashes. Checks with Catch2.
  virtual void check_end(ProcedureExecutor& executor, ProcedureStore& store,
                         std::size_t crashes) = 0;
};

/// How thorough. Pairs of crashes grow with the square of the commits, power cuts with the
/// operations of the file system (about three per commit).
struct CrashPlan {
  bool twice = false;       ///< On the memory store, also a second crash at every commit after one.
  bool leveldb = true;      ///< Not only on the memory store.
  bool power_cuts = false;  ///< On LevelDB, also at every operation of the file system.
  RetryPolicy retry{};
};

using MakeStory = std::function<std::unique_ptr<CrashStory>()>;

/// Plays it all. Fails the current test at the first bad crash point. Returns how many plays there
/// were.
std::size_t crash_everywhere(const MakeStory& make, const CrashPlan& plan = {});

}  // namespace pv2::testing
