// SPDX-License-Identifier: Apache-2.0
//
// LockProcedure: when a client has its locks, who waits for them, and how they are given back.

#include <pv2/procedures/lock_procedure.h>

#include "procedure_drill.h"
#include "procedure_story.h"
#include "table_plots.h"

namespace pv2::testing::lock_procedure_test {
namespace {

using std::chrono::seconds;

const LockOrder kTable{.name_space = "default", .table = "t", .description = "backup"};

/// A cluster with table t, and an executor.
struct Story {
  MemoryCluster cluster;
  DeterministicExecutor executor{cluster};

  Story() {
    (void)cluster.add_server("rs1");
    executor.open();
    REQUIRE(create_t().submit(executor, cluster).ok());
    executor.run();
  }
  ProcedureId lock(const LockOrder& order = kTable) {
    const auto id = executor.submit(LockProcedure(order));
    REQUIRE(id.ok());
    executor.settle();
    return *id;
  }
  void send(ProcedureId id, std::string_view signal) {
    executor->async().signal(id, std::string(signal), "", {});
    executor.settle();
  }
  [[nodiscard]] std::string step_of(ProcedureId id) const {
    const auto info = executor->inspect().describe(id);
    return info.ok() ? info->step_name : "ended";
  }
};

}  // namespace

TEST_CASE("a client that sees HELD has the lock, and nobody else has it until it unlocks") {
  Story story;
  const ProcedureId first = story.lock();
  CHECK(story.step_of(first) == "HELD");
  CHECK_THAT(story.executor->inspect().describe(first)->fields, ContainsSubstring("held_since"));
  const ProcedureId second = story.lock();
  CHECK(story.step_of(second) == "ACQUIRE");
  const auto disable = disable_t().submit(story.executor, story.cluster);
  story.executor.settle();
  CHECK(story.step_of(*disable) == "PREPARE");

  story.send(first, LockProcedure::kUnlockSignal);

  CHECK(story.executor.result(first).result == "unlocked");
  CHECK(story.step_of(second) == "HELD");
  story.send(second, LockProcedure::kUnlockSignal);
  story.executor.run();
  CHECK(story.executor.result(*disable).state == ProcedureState::kSuccess);
}

TEST_CASE("a lock is given back when no heartbeat comes during the lease") {
  Story story;
  const ProcedureId id = story.lock();
  for (int beat = 0; beat < 5; ++beat) {
    story.executor.advance(seconds(29));
    story.send(id, LockProcedure::kHeartbeatSignal);
    CHECK(story.step_of(id) == "HELD");
  }

  story.executor.advance(seconds(29));
  CHECK(story.step_of(id) == "HELD");
  story.executor.advance(seconds(1));

  CHECK(story.executor.result(id).state == ProcedureState::kSuccess);
  CHECK(story.executor.result(id).result == "lease expired: no heartbeat for 30000 ms");
  CHECK(story.executor->inspect().locks().empty());
}

TEST_CASE("a lock is held over a restart, and its lease goes on") {
  Story story;
  const ProcedureId id = story.lock();
  story.executor.advance(seconds(20));

  story.executor.crash();
  story.executor.open();
  story.executor.settle();
  const ProcedureId other = story.lock();
  CHECK(story.step_of(id) == "HELD");
  CHECK(story.step_of(other) == "ACQUIRE");
  story.executor.advance(seconds(10));

  CHECK(story.step_of(id) == "ended");
  CHECK(story.step_of(other) == "HELD");
}

TEST_CASE("an abort gives a lock back") {
  Story story;
  const ProcedureId id = story.lock();

  story.executor->async().abort(id, {}, {});
  story.executor.settle();

  CHECK(story.executor.result(id).status.code() == StatusCode::kAborted);
  CHECK(story.executor->inspect().locks().empty());
}

TEST_CASE("a namespace, a table and regions can be locked, and the locks are those asked for") {
  const LockMode shared = LockMode::kShared;
  const LockMode exclusive = LockMode::kExclusive;
  CHECK(LockProcedure({.name_space = "n"}).locks() == LockSet().name_space("n", exclusive));
  CHECK(LockProcedure({.name_space = "n", .table = "t"}).locks() ==
        LockSet().table("n", "t", exclusive));
  CHECK(LockProcedure({.name_space = "n", .table = "t", .mode = shared}).locks() ==
        LockSet().table("n", "t", shared));
  CHECK(LockProcedure({.name_space = "n", .table = "t", .regions = {"b", "a"}}).locks() ==
        LockSet().region("n", "t", "b", exclusive).region("n", "t", "a", exclusive));
}

TEST_CASE("two clients may share a table, and an exclusive lock waits for both") {
  Story story;
  LockOrder shared = kTable;
  shared.mode = LockMode::kShared;
  const ProcedureId one = story.lock(shared);
  const ProcedureId two = story.lock(shared);
  const ProcedureId all = story.lock();
  CHECK(story.step_of(one) == "HELD");
  CHECK(story.step_of(two) == "HELD");
  CHECK(story.step_of(all) == "ACQUIRE");

  story.send(one, LockProcedure::kUnlockSignal);
  CHECK(story.step_of(all) == "ACQUIRE");
  story.send(two, LockProcedure::kUnlockSignal);
  CHECK(story.step_of(all) == "HELD");
}

TEST_CASE("locks that cannot be had are refused at the first step, and lock nothing") {
  struct Refused {
    LockOrder order;
    std::string why;
  };
  const LockMode shared = LockMode::kShared;
  const std::vector<Refused> all{
      {{.name_space = ""}, "namespace '' is not a legal name"},
      {{.name_space = "n", .mode = shared}, "only a table can be locked shared"},
      {{.name_space = "n", .table = "t", .regions = {"a"}, .mode = shared},
       "only a table can be locked shared"},
      {{.name_space = "n", .regions = {"a"}}, "together with the name of their table"},
      {{.name_space = "n", .table = "t:u"}, "table 't:u' is not a legal name"},
      {{.name_space = "n", .table = "t", .regions = {"a/b"}}, "region 'a/b' is not a legal name"},
      {{.name_space = "n", .table = "t", .regions = std::vector<std::string>(1025, "a")},
       "at most 1024 regions"},
      {{.name_space = "n", .mode = static_cast<LockMode>(9)}, "shared or exclusive"},
      {{.name_space = "n", .description = std::string(1025, 'x')}, "at most 1024 bytes"},
      {{.name_space = "n", .lease = std::chrono::milliseconds(0)}, "at least 1 ms"},
      {{.name_space = "n", .lease = std::chrono::hours(25)}, "at most 24 hours"},
  };
  for (const Refused& refused : all) {
    CAPTURE(refused.why);
    Story story;
    const ProcedureId id = story.lock(refused.order);
    CHECK(story.executor.result(id).status.code() == StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(story.executor.result(id).status.message()),
               ContainsSubstring(refused.why));
    CHECK(LockProcedure(refused.order).locks().empty());
  }
}

TEST_CASE("a lock whose holder says nothing ends the same whichever store write crashes") {
  const ProcedurePlot plot{.subject =
                               operation([](MemoryCluster&) { return LockProcedure(kTable); })};
  check_crashes(plot);
  check_crashes_in_rollback(plot);
}

}  // namespace pv2::testing::lock_procedure_test
