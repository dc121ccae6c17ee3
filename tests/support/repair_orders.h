// SPDX-License-Identifier: Apache-2.0
//
// Helpers for tests of repairs: the note of an order, jobs that park, an order with a crash right
// before or after its commit, and stories that are told with a crash at each commit in turn.

#pragma once

#include "records/row_keys.h"
#include "support/engine_world.h"
#include "support/rows_in_store.h"

namespace pv2::testing {

inline const RepairNote kNote{.who = "anna", .why = "ticket 7"};

// Fails at step 3; the undo of step 2 fails for good until `mended`.
inline JobScript stuck(const bool& mended) {
  return {
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
      .undo =
          [&mended](JobRun& run) {
            return run.step == 2 && !mended ? std::optional(Say::fail("stuck")) : usual();
          },
      .locks = LockSet().table("shop", "orders", LockMode::kExclusive)};
}

// Fails at step 3, and each of its undos fails for good.
inline JobScript stuck_everywhere() {
  return {
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
      .undo = [](JobRun&) { return std::optional(Say::fail("stuck")); }};
}

inline std::string joined(const Result<std::vector<std::string>>& lines) {
  REQUIRE(lines.status().to_string() == "OK");
  std::string text;
  for (const std::string& line : *lines) text += line + "\n";
  return text;
}

// A line for each live procedure: its id, state and step, and whether it is parked.
inline std::string states(EngineWorld& engine) {
  std::string text;
  for (const ProcedureInfo& info : engine.executor().inspect().list()) {
    text += std::to_string(info.id.value) + " " + std::string(to_string(info.state)) + " " +
            info.step_name + (info.parked ? " parked\n" : "\n");
  }
  return text;
}

// Gives the order, with a crash of the machine right before or right after its commit, or without
// one. An order that a crash has lost is given again.
enum class Crash { kNone, kBefore, kAfter };
inline void order(EngineWorld& engine, ProcedureId id, RepairVerb verb, Crash crash,
                  ProcedureId root = {}) {
  if (crash == Crash::kNone) {
    REQUIRE(engine.executor().operate().order(id, verb, kNote).to_string() == "OK");
    return;
  }
  const auto ordered = engine.executor().operate().audit(root ? root : id);
  const std::size_t before = ordered.ok() ? ordered->size() : 0;  // such as an abort
  const std::size_t next = engine.faults().commits() + 1;
  crash == Crash::kBefore ? engine.faults().crash_before(next, FaultStore::AfterCrash::kFail)
                          : engine.faults().crash_after(next, FaultStore::AfterCrash::kFail);
  REQUIRE(engine.executor().operate().order(id, verb, kNote).code() == StatusCode::kUnknownOutcome);
  engine.open();
  const auto done = engine.executor().operate().audit(root ? root : id);
  REQUIRE(done.status().to_string() == "OK");
  REQUIRE(done->size() == before + (crash == Crash::kAfter ? 1 : 0));
  if (crash == Crash::kBefore)
    REQUIRE(engine.executor().operate().order(id, verb, kNote).to_string() == "OK");
}

// Crashes the machine right before or right after the commit of this number, counted from 1.
struct CrashAtCommit {
  Crash crash = Crash::kBefore;
  std::size_t number = 1;

  // The count begins now.
  void arm(EngineWorld& engine) const {
    const std::size_t commit = engine.faults().commits() + number;
    crash == Crash::kBefore ? engine.faults().crash_before(commit, FaultStore::AfterCrash::kFail)
                            : engine.faults().crash_after(commit, FaultStore::AfterCrash::kFail);
  }
};

// Tells a story with a crash at each of its commits in turn, first before it and then after it. The
// story says whether the machine has crashed. If not, it had fewer commits, and was the last.
inline void crash_at_each_commit(const std::function<bool(const CrashAtCommit&)>& story) {
  for (const Crash crash : {Crash::kBefore, Crash::kAfter}) {
    bool has_crashed = true;
    for (CrashAtCommit at{crash}; has_crashed; ++at.number) {
      INFO("the machine crashes " << (crash == Crash::kBefore ? "before" : "after") << " commit "
                                  << at.number);
      has_crashed = story(at);
    }
  }
}

}  // namespace pv2::testing
