// SPDX-License-Identifier: Apache-2.0
//
// Undoing a tree that failed: in reverse order of its durable steps, children before the step that
// spawned them, only steps that were begun, and only once no member is in flight. (Rows 1, 3, 6,
// 10, 17-20, 60, 122; X1, X6. Rows that abort have their own stories in abort_test.cc; here a step
// fails.)

#include <functional>
#include <optional>
#include <string>

#include "model/looks.h"
#include "records/row_keys.h"
#include "records/row_parts.h"
#include "records/state_codec.h"
#include "support/engine_world.h"
#include "watch/state_audit.h"

namespace pv2::testing::rollback_test {
namespace {

using namespace std::chrono_literals;

JobScript failing_at(std::uint32_t step, const std::string& why) {
  return {.steps = 5, .run = [step, why](JobRun& run) {
            return run.step == step ? std::optional(Say::fail(why)) : usual();
          }};
}

// The length of the undo list in the last record of `id`.
std::size_t undo_entries(const EngineWorld& engine, ProcedureId id) {
  Execution execution;
  PartStatus user = PartStatus::kIntact;
  auto row = engine.disk->get(Space::kProcedure, procedure_key(id, RowKind::kState));
  if (!row) {  // it has ended
    const auto both = engine.disk->get(Space::kResult, result_key(id));
    REQUIRE(both.has_value());
    row = std::string(split_result(*both)->state);
  }
  REQUIRE(decode_state(*row, CommitSequence{1}, execution, user).ok());
  return execution.record.undo.size();
}

struct Unknown final : Procedure {
  static constexpr std::string_view kType = "test.Unknown";
  void fields(auto& /*f*/) {}
  Outcome execute(StepContext&) override { return done(); }
};

}  // namespace

TEST_CASE("three nested procedures are undone from the deepest up when the deepest fails") {
  EngineWorld engine;  // behaviour.md, row 3
  engine.world.scripts["a"] = {.steps = 2, .children = {"b"}};
  engine.world.scripts["b"] = {.steps = 2, .children = {"c"}};
  engine.world.scripts["c"] = failing_at(1, "deep down");
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();

  CHECK(engine.journal() == Entries{"do a.1", "do a.2", "do b.1", "do b.2", "undo c.1", "undo b.2",
                                    "undo b.1", "undo a.2", "undo a.1"});
  CHECK(engine.result(id).status == Status(StatusCode::kFailedPrecondition, "deep down"));
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.result(id).result.empty());
}

TEST_CASE("siblings are undone in the reverse order of their steps, not one after the other") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"x", "y", "bad"}};
  engine.world.scripts["x"] = engine.world.scripts["y"] = {.steps = 2};
  engine.world.scripts["bad"] = failing_at(4, "bad");
  engine.open();
  engine.submit("p");
  while (engine.executor().inspect().live_procedures() != 0) engine.executor().run_until_idle(1);

  Entries done;
  for (const std::string& entry : engine.journal()) {
    if (entry.starts_with("do ")) done.push_back(entry.substr(3));
  }
  Entries expected(done.rbegin(), done.rend());
  expected.insert(expected.begin(), "bad.4");  // begun, not done
  CHECK(engine.undone() == expected);
}

TEST_CASE(
    "one sibling fails while another runs and then succeeds: rollback begins, without a restart") {
  EngineWorld engine;  // X1
  engine.world.scripts["p"] = {.children = {"slow", "bad"}};
  engine.world.scripts["slow"] = {.steps = 1};
  engine.world.scripts["bad"] = failing_at(1, "bad");
  engine.open();
  const ProcedureId id = engine.submit("p");
  engine.executor().run_until_idle(2);  // both children are spawned and ready
  // Both run in one batch; the record of the first is durable when that of the second is not.
  engine.faults().hold_commit(engine.faults().commits() + 1);
  engine.run();
  REQUIRE(engine.faults().held() == 2);
  engine.faults().release();
  engine.store().pump_some(1);
  CHECK(engine.undone().empty());  // one is in flight
  engine.run();

  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.undone().size() == 4);
  CHECK(engine.executor().inspect().locks().empty());
}

TEST_CASE("of several failures the one that was durable first is the cause, over restarts too") {
  EngineWorld engine;  // X6
  const bool restart = GENERATE(false, true);
  engine.world.scripts["p"] = {.children = {"late", "soon"}};
  engine.world.scripts["late"] = failing_at(3, "late");
  engine.world.scripts["soon"] = failing_at(3, "soon");
  engine.open();
  const ProcedureId id = engine.submit("p");
  engine.executor().run_until_idle(2);
  std::optional<std::string> first;
  for (int i = 0; engine.executor().inspect().live_procedures() != 0; ++i) {
    engine.executor().run_until_idle(1);
    for (const ProcedureInfo& info : engine.executor().inspect().list()) {
      if (!first && info.state == ProcedureState::kFailed && info.parent) {
        first = std::string(info.error.message());
      }
    }
    if (restart && i % 2 == 1 && engine.executor().inspect().live_procedures() != 0)
      engine.crash_and_open();
  }
  REQUIRE(first.has_value());
  CHECK(engine.result(id).status.message() == *first);
}

TEST_CASE("children that were never begun are not undone, and never begin") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 2) return usual();
    for (const char* child : {"bad", "locked"}) run.spawn(child);
    return usual();
  }};
  const auto table = LockSet().table("shop", "orders", LockMode::kExclusive);
  engine.world.scripts["holder"] = {
      .run = [](JobRun& run) -> std::optional<Outcome> {
        const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
        return value == nullptr ? std::optional(Say::wait()) : usual();
      },
      .locks = table};
  engine.world.scripts["bad"] = failing_at(1, "bad");
  engine.world.scripts["locked"] = {.locks = table};
  engine.open();
  engine.submit("holder");
  engine.run();
  const ProcedureId id = engine.submit("p");
  engine.run();

  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.world.journal.count("do locked.1") == 0);
  CHECK(engine.world.journal.count("undo locked.1") == 0);
}

TEST_CASE("a failed tree is shown as failing while it is undone, and as ended only afterwards") {
  EngineWorld engine;  // behaviour.md, row 122
  engine.world.scripts["a"] = {
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
      .undo = [](JobRun& run) -> std::optional<Outcome> {
        const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
        return value == nullptr ? std::optional(Say::wait()) : usual();
      }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();

  CHECK(engine.describe(id).state == ProcedureState::kFailed);
  CHECK(engine.executor().wait(id, 0ms).status().code() == StatusCode::kDeadlineExceeded);
  CHECK(engine.executor().acknowledge(id).code() == StatusCode::kFailedPrecondition);
  while (engine.world.answer_one("go on")) engine.run();
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
}

TEST_CASE("steps without undo are passed over") {
  EngineWorld engine;
  engine.world.scripts["a"] = failing_at(3, "before the commit point");
  engine.open();
  const ProcedureId id = engine.submit<CommittingJob>("a");
  engine.run();
  CHECK(engine.undone() == Entries{"a.1"});  // 2 is a check; 3 is the point of no return itself
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
}

TEST_CASE("a failure behind the point of no return parks the tree, and says so") {
  EngineWorld engine;
  engine.world.scripts["a"] = failing_at(4, "too late");
  engine.open();
  const ProcedureId id = engine.submit<CommittingJob>("a");
  for (int life = 0; life < 2; ++life) {
    engine.run();
    CHECK(engine.describe(id).parked);
    CHECK(engine.describe(id).error.message() == "too late");
    CHECK(engine.undone().empty());
    engine.crash_and_open();
  }
}

TEST_CASE("a final child stays, and its parent's undo is told what it made") {
  EngineWorld engine;
  engine.world.scripts["p"] = {
      .run =
          [](JobRun& run) {
            if (run.step == 2) run.ctx.spawn(FinalJob(run.world, "final"));
            return run.step == 3 ? std::optional(Say::fail("after it")) : usual();
          },
      .undo = [](JobRun& run) -> std::optional<Outcome> {
        if (run.step != 2) return usual();
        REQUIRE(run.ctx.children().size() == 1);
        CHECK(run.ctx.children()[0].state == ProcedureState::kSuccess);
        run.world.journal.note("compensate " + std::string(run.ctx.children()[0].result));
        return Say::undone();
      }};
  engine.world.scripts["final"] = {.steps = 2};
  engine.open();
  engine.submit("p");
  engine.run();
  CHECK(engine.world.journal.count("compensate final done") == 1);
  CHECK(engine.undone() == Entries{"p.3", "p.1"});
}

TEST_CASE("what a final child has spawned stays with it, and leaves early") {
  const bool crashes = GENERATE(false, true);
  EngineWorld engine;
  auto& scripts = engine.world.scripts;
  scripts["p"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 2) run.ctx.spawn(FinalJob(run.world, "final"));
    if (run.step != 3) return usual();
    return run.ctx.signal("go") != nullptr ? Say::fail("no") : Say::wait();
  }};
  scripts["final"] = {.run = [](JobRun& run) {
    if (run.step == 1) {
      run.spawn("c");
      run.ctx.spawn(CommittingJob(run.world, "committed"));
      run.ctx.spawn(Job(run.world, "head"), {.on_failure = OnFailure::kReport});
    }
    return usual();
  }};
  scripts["c"] = scripts["head"] = {.children = {"leaf"}};
  scripts["committed"] = {.steps = 5};
  scripts["leaf"] = {.steps = 1};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 2);

  if (crashes) engine.crash_and_open();
  REQUIRE(engine.executor().signal(root, "go").to_string() == "OK");
  engine.run();

  CHECK(engine.undone() == Entries{"p.3", "p.2", "p.1"});
  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
}

namespace {

// A root that runs final children, one after the other, and then waits for "go".
void script_final_children(World& world, int rounds) {
  world.scripts["p"] = {.run = [round = 0, rounds](JobRun& run) mutable -> std::optional<Outcome> {
    if (run.step != 2) return usual();
    if (round == rounds) return run.ctx.signal("go") == nullptr ? Say::wait() : usual();
    ++round;
    const auto beside = UndoOrder::kConcurrent;
    run.ctx.spawn(FinalJob(run.world, "final"), {.undo_order = beside});
    return Say::again();
  }};
}

}  // namespace

TEST_CASE("what a final child has spawned leaves early, however much it is") {
  const int depth = GENERATE(1, 200);  // 200: more levels than are looked at with one record
  const int width = GENERATE(1, 600);
  const bool crashes = GENERATE(false, true);
  INFO(depth << " levels, " << width << " at the bottom, crashes: " << crashes);
  EngineWorld engine;
  engine.max_live_procedures = 10'000;
  script_final_children(engine.world, 4);
  auto& scripts = engine.world.scripts;
  scripts["final"] = {.steps = 2, .children = {"level 1"}};
  for (int level = 1; level <= depth; ++level) {
    scripts["level " + std::to_string(level)] = {
        .steps = 1, .run = [=](JobRun& run) {
          const bool is_bottom = level == depth;
          for (int i = 0; i < (is_bottom ? width : 1); ++i) {
            run.spawn(is_bottom ? "leaf" : "level " + std::to_string(level + 1));
          }
          return usual();
        }};
  }
  scripts["leaf"] = {.steps = 1};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 2);  // "p" may ask for its last child

  if (crashes) engine.crash_and_open();
  engine.run();
  CHECK(engine.executor().inspect().live_procedures() == 2);
  REQUIRE(engine.executor().signal(root, "go").to_string() == "OK");
  engine.run();
  CHECK(engine.result(root).status.ok());
}

namespace {

// A root with two children that wait for "go": "final", which has spawned many, the first and the
// last of them past their points of no return; and "other".
ProcedureId submit_final_child_of_many(EngineWorld& engine) {
  engine.max_live_procedures = 10'000;
  auto& scripts = engine.world.scripts;
  scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) {
      run.ctx.spawn(FinalJob(run.world, "final"), {.undo_order = UndoOrder::kConcurrent});
      run.spawn("other");
    }
    return usual();
  }};
  scripts["final"] = {.steps = 2, .run = [](JobRun& run) {
                        if (run.step == 2) {
                          return run.ctx.signal("go") == nullptr ? Say::wait() : usual();
                        }
                        run.ctx.spawn(CommittingJob(run.world, "committed"));
                        for (int i = 0; i < 2000; ++i) run.spawn("c");
                        run.ctx.spawn(CommittingJob(run.world, "committed"));
                        return usual();
                      }};
  scripts["c"] = {.steps = 1};
  scripts["committed"] = {.steps = 5};
  scripts["other"] = {.steps = 1, .run = [](JobRun& run) {
                        return run.ctx.signal("go") == nullptr ? Say::wait() : Say::fail("no");
                      }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  REQUIRE(engine.executor().abort(root).code() == StatusCode::kFailedPrecondition);
  return root;
}

void say_go(EngineWorld& engine, ProcedureId id) {
  engine.executor().async().signal(id, "go", {}, [](const Status&) {});
}

// Calls `call` at the first pause of the work by which members leave, when most of them are left.
void run_with_pause(EngineWorld& engine, const std::function<void()>& call) {
  std::size_t live = 0;
  SectionLooks::at_each_pause(engine.executor(), [&] {
    if (live != 0) return;
    live = engine.executor().inspect().live_procedures();
    CHECK(StateAudit::of(engine.executor()).empty());
    call();
  });
  engine.run();
  SectionLooks::at_each_pause(engine.executor(), {});
  CHECK(live > 1000);
}

}  // namespace

TEST_CASE("a tree can be aborted before all that a final child has spawned has left") {
  EngineWorld engine;
  const ProcedureId root = submit_final_child_of_many(engine);
  std::optional<Status> answer;
  say_go(engine, {root.value + 1});
  run_with_pause(engine, [&] {
    engine.executor().async().abort(root, {}, [&](const Status& status) { answer = status; });
  });
  REQUIRE(answer);
  CHECK(answer->to_string() == "OK");
  CHECK(engine.undone() == Entries{"other.1", "p.2", "p.1"});
  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
  CHECK(engine.executor().inspect().live_procedures() == 0);
}

TEST_CASE("what a final child has spawned stays also before it has left") {
  EngineWorld engine;
  const ProcedureId root = submit_final_child_of_many(engine);
  say_go(engine, {root.value + 1});
  say_go(engine, {root.value + 2});  // its failure becomes durable with the success of "final"
  run_with_pause(engine, [] {});
  CHECK(engine.undone() == Entries{"other.1", "p.2", "p.1"});
  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
  CHECK(engine.executor().inspect().live_procedures() == 0);
}

TEST_CASE("a final child that fails is undone with what it has spawned") {
  EngineWorld engine;
  auto& scripts = engine.world.scripts;
  scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) run.ctx.spawn(FinalJob(run.world, "final"));
    return usual();
  }};
  scripts["final"] = {.children = {"c"}, .run = [](JobRun& run) {
                        return run.step == 3 ? std::optional(Say::fail("no")) : usual();
                      }};
  scripts["c"] = {.steps = 1};
  engine.open();
  engine.submit("p");
  engine.run();
  CHECK(engine.undone() == Entries{"final.3", "c.1", "final.2", "final.1", "p.2", "p.1"});
}

TEST_CASE("a final child that fails is undone like any other") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) run.ctx.spawn(FinalJob(run.world, "final"));
    return usual();
  }};
  engine.world.scripts["final"] = failing_at(2, "no");
  engine.open();
  engine.submit("p");
  engine.run();
  CHECK(engine.undone() == Entries{"final.2", "final.1", "p.2", "p.1"});
}

TEST_CASE("the fields that a step kept are there when it is undone, also after a restart") {
  EngineWorld engine;  // behaviour.md, rows 10, 13
  engine.world.scripts["a"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 3) return Say::fail("no");
                                 run.note += std::to_string(run.step);
                                 return usual();
                               },
                               .undo = [](JobRun& run) -> std::optional<Outcome> {
                                 run.world.journal.note("note " + run.note);
                                 if (!run.note.empty()) run.note.pop_back();
                                 return usual();
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  while (engine.executor().inspect().live_procedures() != 0) {
    engine.executor().run_until_idle(1);
    engine.crash_and_open();
  }
  CHECK(engine.world.journal.count("note 12") == 1);  // undoing 3, which had kept nothing
  CHECK(engine.world.journal.count("note 1") == 1);
  CHECK(engine.world.journal.count("note ") == 1);
  CHECK(engine.result(id).status.message() == "no");
}

TEST_CASE("a loop over undoable steps is bounded, and then undone") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    return Say::next(run.step == 1 ? 2 : 1);
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run_to_the_end();
  CHECK(engine.result(id).status.code() == StatusCode::kInvalidArgument);
  CHECK(engine.undone().size() >= 1024);
}

TEST_CASE("a step with an impossible answer fails its tree, and the error names the step") {
  EngineWorld engine;
  const int answer = GENERATE(0, 1, 2);
  engine.world.scripts["c"] = {};
  engine.world.scripts["a"] = {.run = [answer](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 2) return usual();
    if (answer == 0) return Say::next(99);
    if (answer == 1) return Say::undone();
    run.spawn("c");
    run.ctx.offload([] { return 1; });
    return Say::wait();
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.result(id).status.code() == StatusCode::kInternal);
  CHECK_THAT(engine.result(id).status.to_string(), ContainsSubstring("step TWO"));
  CHECK(engine.undone() == Entries{"a.2", "a.1"});
}

TEST_CASE("a step that was begun and never recorded is undone, though its undo was interrupted") {
  EngineWorld engine;
  const bool wait = GENERATE(false, true);
  engine.world.scripts["p"] = {.children = {"begun", "bad"}};
  engine.world.scripts["begun"] = {
      .steps = 1,
      .run =
          [](JobRun& run) {
            run.effect();
            return std::optional(Say::retry("half done"));
          },
      .undo =
          [wait](JobRun& run) {
            const bool first = wait ? !run.ctx.timed_out() : run.ctx.attempt() == 1;
            if (!first) return usual();
            return std::optional(wait ? Say::wait_for(1min) : Say::retry("not yet"));
          }};
  engine.world.scripts["bad"] = failing_at(2, "bad");
  engine.open();
  const ProcedureId id = engine.submit("p");
  engine.run();
  REQUIRE(engine.world.journal.count("undo begun.1") == 0);  // the undo is to be tried again
  engine.crash_and_open();
  engine.run_to_the_end();

  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.undone() == Entries{"begun.1", "bad.2", "bad.1", "p.2", "p.1"});
}

TEST_CASE("a step that was begun after its children had ended is undone over a crash") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"c"}, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step != 3) return usual();
                                 run.effect();
                                 const auto* value =
                                     run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
                                 return value == nullptr ? std::optional(Say::wait()) : usual();
                               }};
  engine.world.scripts["c"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("p");
  engine.run();
  REQUIRE(engine.world.journal.count("do p.3") == 1);  // and no record says that it goes on
  engine.faults().crash_after(engine.faults().commits() + 1, FaultStore::AfterCrash::kFail);
  REQUIRE(!engine.executor().abort(id).ok());
  engine.open();
  engine.run_to_the_end();

  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.undone() == Entries{"p.3", "c.1", "p.2", "p.1"});
}

TEST_CASE("an undo that waits for nothing parks its tree, and says so") {
  EngineWorld engine;
  engine.world.scripts["a"] = failing_at(2, "no");
  engine.world.scripts["a"].undo = [](JobRun&) { return std::optional(Say::wait()); };
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();

  const ProcedureInfo info = engine.describe(id);
  CHECK(info.parked);
  CHECK_THAT(engine.log_lines.back(), ContainsSubstring("awaits nothing and has no timeout"));
}

TEST_CASE("a child that never began gives its locks back to the undo that needs them") {
  EngineWorld engine;
  const bool restart = GENERATE(false, true);
  const auto table = LockSet().table("shop", "orders", LockMode::kExclusive);
  const auto asks = [](JobRun& run) {
    return run.ctx.await<std::string>([&](auto c) { run.world.ask(c); }) == nullptr;
  };
  engine.world.scripts["p"] = {.children = {"first", "second", "bad"}};
  engine.world.scripts["first"] = {
      .steps = 1,
      .run = [=](JobRun& run) { return asks(run) ? std::optional(Say::wait()) : usual(); },
      .locks = table};
  engine.world.scripts["second"] = {.steps = 1, .locks = table};
  engine.world.scripts["bad"] = {
      .steps = 1,
      .run = [=](JobRun& run) { return std::optional(asks(run) ? Say::wait() : Say::fail("bad")); },
      .locks = LockSet().table("shop", "returns", LockMode::kShared)};  // polled together
  engine.open();
  const ProcedureId id = engine.submit("p");
  engine.run();
  REQUIRE(engine.world.asked() == 2);
  engine.world.answer_one("go on");
  engine.executor().run_until_idle(1);
  REQUIRE(engine.world.journal.count("do first.1") == 1);
  engine.world.answer_one("now fail");
  engine.executor().run_until_idle(2);  // together: `second` gets its locks, and `bad` fails
  REQUIRE(engine.world.journal.count("do second.1") == 0);
  if (restart) engine.crash_and_open();
  engine.run();

  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.world.journal.count("undo first.1") == 1);
}

TEST_CASE("a wait inside an undo that writes nothing changes nothing that is listed") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"done", "bad"}};
  engine.world.scripts["done"] = {
      .steps = 1, .undo = [](JobRun& run) -> std::optional<Outcome> {
        const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
        return value == nullptr ? std::optional(Say::wait()) : usual();
      }};
  engine.world.scripts["bad"] = failing_at(2, "bad");
  engine.open();
  engine.submit("p");
  engine.run();
  REQUIRE(engine.world.asked() == 1);

  const auto listed = in_words(engine.executor().inspect().list());
  engine.crash_and_open();
  CHECK(in_words(engine.executor().inspect().list()) == listed);
}

TEST_CASE("a child that ends while its tree fails is not waited for, before and after a restart") {
  EngineWorld engine;
  const auto ask = [](JobRun& run) {
    return run.ctx.await<std::string>([&](auto c) { run.world.ask(c); }) != nullptr;
  };
  engine.world.scripts["top"] = {.steps = 5, .run = [](JobRun& run) -> std::optional<Outcome> {
                                   if (run.step == 4) run.spawn("bad"), run.spawn("parent");
                                   return std::nullopt;
                                 }};
  engine.world.scripts["bad"] = {.steps = 1, .run = [ask](JobRun& run) -> std::optional<Outcome> {
                                   return ask(run) ? Say::fail("bad") : Say::wait();
                                 }};
  engine.world.scripts["parent"] = {.steps = 2, .children = {"late"}};
  engine.world.scripts["late"] = {.steps = 1, .run = [ask](JobRun& run) {
                                    return ask(run) ? usual() : std::optional(Say::wait());
                                  }};
  engine.open();
  const ProcedureId id = engine.submit<CommittingJob>("top");
  engine.run();
  REQUIRE(engine.world.asked() == 2);
  engine.world.answer_one("bad");
  engine.world.answer_one("late");
  engine.run();  // both in one run of a worker: the failure is published first

  REQUIRE(engine.describe(id).parked);  // beyond its point of no return
  const ProcedureId parent{id.value + 2};
  CHECK(engine.world.journal.count("do late.1") == 1);
  CHECK(engine.describe(parent).state == ProcedureState::kRunnable);
  const auto listed = in_words(engine.executor().inspect().list());
  engine.crash_and_open();
  CHECK(in_words(engine.executor().inspect().list()) == listed);
}

TEST_CASE("a step that repeats itself after spawning is undone after its children") {
  EngineWorld engine;
  engine.world.scripts["child"] = {.steps = 1};
  engine.world.scripts["parent"] = {.steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
                                      if (run.step == 2) return Say::fail("no");
                                      run.effect();
                                      if (!run.note.empty()) return Say::next(2);
                                      run.note = "spawned";
                                      run.spawn("child");
                                      return Say::again();
                                    }};
  engine.open();
  engine.submit("parent");
  engine.run();

  CHECK(engine.journal() == Entries{"do parent.1", "do child.1", "do parent.1", "undo parent.2",
                                    "undo child.1", "undo parent.1"});
}

TEST_CASE("a child that cannot be recorded fails its parent, and the finished steps are undone") {
  EngineWorld engine;  // behaviour.md, row 1
  engine.world.scripts["a"] = {.steps = 2, .children = {"b"}};
  engine.world.scripts["b"] = {.steps = 1, .run = [](JobRun& run) {
                                 run.effect();
                                 run.ctx.spawn(Unknown());
                                 return std::optional(Say::done());
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();

  CHECK(engine.journal() ==
        Entries{"do a.1", "do a.2", "do b.1", "undo b.1", "undo a.2", "undo a.1"});
  CHECK_THAT(engine.result(id).status.to_string(), ContainsSubstring("test.Unknown"));
  CHECK(engine.disk->rows() - engine.disk->rows(Space::kEngine, "schema:") == 1 + 2);
}

TEST_CASE("the undo list is empty after a rollback, also after one whose undos failed at times") {
  EngineWorld engine;  // behaviour.md, rows 19, 20
  const bool throws = GENERATE(false, true);
  engine.world.scripts["a"] = {.children = {"b"}};
  engine.world.scripts["a"].undo = [throws](JobRun& run) -> std::optional<Outcome> {
    if (throws && run.ctx.attempt() == 1) throw std::runtime_error("not now");
    return usual();
  };
  engine.world.scripts["b"] = failing_at(1, "as it was told");
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.executor().run_until_idle(2);
  CHECK(undo_entries(engine, id) == 2);
  engine.run_to_the_end();

  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(undo_entries(engine, id) == 0);
}

TEST_CASE(
    "a holder that fails while it waits is undone under its lock, and then the next gets it") {
  EngineWorld engine;  // behaviour.md, row 27
  const auto table = LockSet().table("shop", "orders", LockMode::kExclusive);
  engine.world.scripts["holder"] = {
      .run = [](JobRun& run) -> std::optional<Outcome> {
        if (run.step != 2) return usual();
        const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
        return value == nullptr ? Say::wait() : Say::fail(*value);
      },
      .locks = table};
  engine.world.scripts["next"] = {.steps = 1, .locks = table};
  engine.open();
  const ProcedureId holder = engine.submit("holder");
  engine.submit("next");
  engine.run();
  CHECK(engine.journal() == Entries{"do holder.1"});
  engine.world.answer_one("the world says no");
  engine.run();

  CHECK(engine.journal() == Entries{"do holder.1", "undo holder.2", "undo holder.1", "do next.1"});
  CHECK(engine.result(holder).status.message() == "the world says no");
}

}  // namespace pv2::testing::rollback_test
