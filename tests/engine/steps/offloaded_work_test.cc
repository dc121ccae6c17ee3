// SPDX-License-Identifier: Apache-2.0
//
// Offloaded work that outlives the run of its step. Most of the executors here have no threads: the
// callable itself runs the engine, and what the engine does then happens "while the work runs".

#include <atomic>
#include <barrier>
#include <future>
#include <latch>
#include <memory>
#include <thread>

#include "support/engine_world.h"
#include "support/job_story.h"

namespace pv2::testing::offloaded_work_test {
namespace {

using namespace std::chrono_literals;
using Kind = WaitReason::Kind;

const ResourceKey kPlaces{ResourceClass::kHostFirst, "encoders"};

// Step `step` offloads `work`, and answers `meanwhile` until the work has ended, or `late` after a
// time-out.
JobScript offloads_in(std::uint32_t step, std::function<void()> work, Outcome meanwhile,
                      std::function<Outcome(JobRun&)> late = {}) {
  return {.steps = 2, .run = [=](JobRun& run) -> std::optional<Outcome> {
            if (run.step != step) return usual();
            if (late && run.ctx.timed_out()) return late(run);
            return run.ctx.offload(work) == nullptr ? std::optional(meanwhile) : usual();
          }};
}

LockSet table(LockMode mode = LockMode::kExclusive) { return LockSet().table("shop", "t", mode); }

void abort(EngineWorld& engine, ProcedureId id) {
  engine.executor().async().abort(id, {.reason = "no longer wanted"},
                                  [](const Status& status) { CHECK(status.to_string() == "OK"); });
  engine.run();
}

// Submits within the work, which is on a thread of the executor and must not wait.
ProcedureId submit_beside(EngineWorld& engine, const std::string& name) {
  ProcedureId id;
  engine.executor().async().submit(Job(engine.world, name), {},
                                   [&](const Result<Submitted>& submitted) { id = submitted->id; });
  engine.run();
  REQUIRE(id);
  return id;
}

Entries between(EngineWorld& engine, const std::string& from, const std::string& to) {
  const auto journal = engine.journal();
  const auto begin = std::find(journal.begin(), journal.end(), from);
  const auto end = std::find(journal.begin(), journal.end(), to);
  REQUIRE(begin < end);
  return {begin + 1, end};
}

std::optional<WaitReason> offload_reason(EngineWorld& engine, ProcedureId id) {
  const auto why = engine.executor().inspect().explain(id);
  REQUIRE(why.ok());
  for (const WaitReason& reason : why->procedures.front().reasons) {
    if (reason.kind == Kind::kOffload) return reason;
  }
  return std::nullopt;
}

// explain(), in words.
std::string words_of(EngineWorld& engine, ProcedureId id) {
  return to_string(*engine.executor().inspect().explain(id));
}

}  // namespace

TEST_CASE("an undo begins when the work that its step has offloaded has ended") {
  EngineWorld engine;
  const int how = GENERATE(0, 1, 2, 3);
  CAPTURE(how);
  ProcedureId id;
  const auto work = [&] {
    engine.world.journal.note("work begins");
    if (how == 0) abort(engine, id);
    if (how > 0) engine.advance(2h);
    engine.advance(1h);
    engine.world.journal.note("work ends");
  };
  engine.world.scripts["sibling"] = {.steps = 1};
  engine.world.scripts["a"] =
      offloads_in(2, work, how == 0 ? Say::wait() : Say::wait_for(1h), [how](JobRun&) -> Outcome {
        if (how == 1) return Say::fail("too slow");
        if (how == 2) throw std::runtime_error("too slow");
        return Say::done("without it");
      });
  engine.world.scripts["p"] = {.steps = 3, .children = {"sibling", "a"}};
  engine.world.scripts["p"].run = [&](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 3) return Say::fail("after all");
    return usual();
  };
  engine.open();
  id = engine.submit("p");
  engine.run_to_the_end();

  CHECK(between(engine, "work begins", "work ends").empty());
  CHECK(count(engine.journal(), "undo a.2") == 1);
  CHECK(count(engine.journal(), "undo sibling.1") == 1);
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
}

TEST_CASE("a lock is granted to nobody else while work that its holder has offloaded runs") {
  EngineWorld engine;
  const int how = GENERATE(0, 1, 2);
  const LockScope scope = GENERATE(LockScope::kOperation, LockScope::kStep, LockScope::kVisit);
  CAPTURE(how, scope);
  ProcedureId id;
  const auto work = [&] {
    engine.world.journal.note("work begins");
    submit_beside(engine, "other");
    if (how == 0) abort(engine, id);
    engine.advance(2h);
    engine.advance(2h);
    engine.world.journal.note("work ends");
  };
  engine.world.scripts["other"] = {.steps = 1, .locks = table()};
  engine.world.scripts["a"] = offloads_in(2, work, Say::wait_for(1h), [&](JobRun& run) -> Outcome {
    if (how == 1) return Say::fail("too slow");
    return run.ctx.attempt() == 1 ? Say::retry("too slow") : Say::done("without it");
  });
  engine.world.scripts["a"].locks = table().scope(scope);
  engine.open();
  id = engine.submit("a");
  engine.run_to_the_end();

  CHECK(count(between(engine, "work begins", "work ends"), "do other.1") == 0);
  CHECK(count(engine.journal(), "do other.1") == (how == 2 ? 2 : 1));  // one for each attempt
}

TEST_CASE("a limit of two lets two pieces of offloaded work run, whatever the scope of the lock") {
  EngineWorld engine;
  const LockScope scope = GENERATE(LockScope::kOperation, LockScope::kStep, LockScope::kVisit);
  CAPTURE(scope);
  int running = 0;
  int most = 0;
  const auto work = [&] {
    most = std::max(most, ++running);
    engine.run();
    --running;
  };
  engine.world.scripts["encode"] = offloads_in(1, work, Say::wait());
  engine.world.scripts["encode"].locks = LockSet().key(kPlaces, LockMode::kShared).scope(scope);
  engine.open();
  REQUIRE(engine.executor().operate().set_limit(kPlaces, 2).ok());
  for (int i = 0; i < 8; ++i) engine.submit("encode");
  engine.run_to_the_end();

  CHECK(most == 2);
  CHECK(count(engine.journal(), "do encode.2") == 8);
}

TEST_CASE("an attempt starts no second copy of its work while the first runs, unless it says so") {
  EngineWorld engine;
  const bool beside = GENERATE(false, true);
  CAPTURE(beside);
  int running = 0;
  int most = 0;
  int begun = 0;
  const auto work = [&] {
    most = std::max(most, ++running);
    const int number = ++begun;
    for (int i = 0; number < 4 && i < 4; ++i) engine.advance(2h);
    --running;
    return number;
  };
  std::vector<int> values;
  engine.world.scripts["a"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 if (run.ctx.timed_out()) return Say::retry("too slow");
                                 const auto* value =
                                     run.ctx.offload(work, {.beside_earlier = beside});
                                 if (value == nullptr) return Say::wait_for(1h);
                                 values.push_back(**value);
                                 return usual();
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run_to_the_end();

  CHECK(engine.result(id).status.ok());
  CHECK(most == (beside ? 4 : 1));
  CHECK(values.size() == 1);
  CHECK(values.front() > 1);  // the value of the first attempt was dropped
}

TEST_CASE(
    "a procedure goes on when a step ends before its work, and ends when the work has ended") {
  EngineWorld engine;
  const bool has_child = GENERATE(false, true);
  ProcedureId id;
  bool ended = false;
  std::string why;
  const auto work = [&] {
    engine.world.journal.note("work begins");
    submit_beside(engine, "other");
    engine.advance(1min);
    why = words_of(engine, id);
    CHECK_FALSE(ended);
    engine.world.journal.note("work ends");
  };
  engine.world.scripts["child"] = {.steps = 1};
  engine.world.scripts["other"] = {.steps = 1, .locks = table()};
  engine.world.scripts["a"] = {.steps = 2, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 1) run.ctx.offload(work);
                                 if (run.step == 2 && has_child) run.spawn("child");
                                 return usual();
                               }};
  engine.world.scripts["a"].locks = table();
  engine.open();
  id = engine.submit("a");
  engine.executor().async().wait(id, [&](const Result<ProcedureResult>&) { ended = true; });
  engine.run_to_the_end();

  CHECK(ended);
  CHECK(engine.result(id).result == "a done");
  CHECK(count(between(engine, "work begins", "work ends"), "do other.1") == 0);
  CHECK_THAT(why, ContainsSubstring("offloaded work, for 60.0 s"));
}

TEST_CASE("a lock per step that was kept for work is given back when the work ends") {
  EngineWorld engine;
  const bool backs_off = GENERATE(false, true);
  const LockScope scope = GENERATE(LockScope::kStep, LockScope::kVisit);
  if (!backs_off && scope == LockScope::kVisit) return;  // such a lock is kept over waits
  engine.retry = {.base = 240h, .cap = 240h, .jitter_percent = 0};
  engine.world.scripts["other"] = {.steps = 1, .locks = table()};
  const auto work = [&] {
    submit_beside(engine, "other");
    engine.advance(1h);
    CHECK(engine.world.journal.count("do other.1") == 0);
  };
  engine.world.scripts["a"] = {.steps = 2, .run = [=](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 1) run.ctx.offload(work);
                                 if (run.step == 1) return usual();
                                 return backs_off ? Say::retry("later") : Say::wait_for(240h);
                               }};
  engine.world.scripts["a"].locks = table().scope(scope);
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();

  CHECK(engine.world.journal.count("do other.1") == 1);
  CHECK_FALSE(engine.describe(id).holds_locks);
  engine.crash_and_open();
  CHECK_FALSE(engine.describe(id).holds_locks);
}

TEST_CASE("a step under a lock kept for earlier work counts as begun when the lock is given back") {
  const bool crash = GENERATE(false, true);
  const bool commits = GENERATE(false, true);
  EngineWorld engine;
  const std::uint32_t offloads = commits ? 2 : 1;
  const auto run_step = [=, &engine](JobRun& run) -> std::optional<Outcome> {
    if (run.step == offloads) run.ctx.offload([&engine] { engine.run(); });
    if (run.step != offloads + 1) return usual();
    run.effect();
    return run.ctx.signal("go") == nullptr ? std::optional(Say::wait()) : usual();
  };
  engine.world.scripts["a"] = {
      .steps = 4, .run = run_step, .locks = table().scope(LockScope::kStep)};
  engine.open();
  const ProcedureId id = commits ? engine.submit<CommittingJob>("a") : engine.submit("a");
  engine.run();
  REQUIRE(engine.world.journal.count(commits ? "do a.3" : "do a.2") == 1);
  CHECK_FALSE(engine.describe(id).holds_locks);
  if (crash) engine.crash_and_open();
  const Status aborted = engine.executor().abort(id);
  if (commits) {
    CHECK_THAT(aborted.to_string(), ContainsSubstring("has begun its point of no return"));
    return;
  }
  CHECK(aborted.ok());
  engine.run();
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.world.journal.count("undo a.2") == 1);
  CHECK(engine.journal().back() == "undo a.1");
}

TEST_CASE("a lock per visit is kept over waits, and given back in a back-off and when parked") {
  EngineWorld engine;
  engine.retry = {.base = 1h, .cap = 1h, .jitter_percent = 0, .max_attempts = 2};
  engine.world.scripts["other"] = {.steps = 1, .locks = table()};
  engine.world.scripts["a"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 const auto* answer = run.ctx.await<std::string>(
                                     [&](auto completion) { run.world.ask(completion); });
                                 return answer == nullptr ? Say::wait() : Say::retry(*answer);
                               }};
  engine.world.scripts["a"].locks = table().scope(LockScope::kVisit);
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.submit("other");
  engine.run();
  CHECK(engine.world.journal.count("do other.1") == 0);  // it waits, and keeps the lock

  CHECK(engine.world.answer_one("no"));
  engine.run();
  CHECK(engine.world.journal.count("do other.1") == 1);  // in the back-off

  engine.advance(1h);
  engine.submit("other");
  engine.run();
  CHECK(engine.world.journal.count("do other.1") == 1);
  CHECK(engine.world.answer_one("no again"));
  engine.run();
  CHECK(engine.describe(id).parked);
  CHECK(engine.world.journal.count("do other.1") == 2);  // parked
  engine.crash_and_open();
  CHECK_FALSE(engine.describe(id).holds_locks);
}

TEST_CASE("a result and its nonce are kept for their time from the end of offloaded work") {
  const bool too_large = GENERATE(false, true);
  EngineWorld engine;
  engine.store_options.limits = {.batch_operations = 64, .batch_bytes = 64 << 10};
  const std::string name(too_large ? 20'000 : 1, 'a');
  engine.world.scripts[name] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                  run.ctx.put_row("made", "x");
                                  if (too_large) run.note.assign(40'000, 'n');
                                  run.ctx.offload([&] { engine.advance(2h); });
                                  return Say::done("ready");
                                }};
  ExecutorOptions options = engine.options();
  options.retention.ttl = 1h;
  engine.open(std::move(options));
  const ProcedureId id = engine.submit(name, {.nonce = {1, 1}});
  engine.run();
  engine.advance(1h - 1us);
  CHECK(engine.submit(name, {.nonce = {1, 1}}) == id);
  CHECK(engine.result(id).result == "ready");
  CHECK(engine.disk->rows(Space::kEngine, "kept:") == 1);
  CHECK(engine.disk->rows(Space::kResult) == (too_large ? 0 : 1));
  CHECK(engine.disk->get(Space::kHost, "made") == "x");
  engine.advance(1us);
  CHECK(engine.disk->rows(Space::kEngine, "kept:") == 0);
  CHECK_FALSE(engine.executor().submit(Job(engine.world, name), {.nonce = {1, 1}})->replayed);
}

TEST_CASE("an undo is over when the work that it has offloaded has ended") {
  EngineWorld engine;
  const auto work = [&] {
    engine.world.journal.note("work begins");
    engine.advance(2h);
    engine.world.journal.note("work ends");
  };
  engine.world.scripts["a"] = {.steps = 3,
                               .run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 3) return Say::fail("no");
                                 return usual();
                               },
                               .undo = [&](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step != 2) return usual();
                                 run.undo_effect();
                                 run.ctx.offload(work);
                                 return Say::undone();
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run_to_the_end();

  CHECK(between(engine, "work begins", "work ends").empty());
  CHECK(engine.journal().back() == "undo a.1");
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
}

TEST_CASE(
    "work is told to stop when no step will take its value, and work not begun never begins") {
  EngineWorld engine;
  const int how = GENERATE(0, 1, 2, 3);
  CAPTURE(how);
  ProcedureId id;
  bool told_before = false;
  bool told_after = false;
  int second = 0;
  const auto owned = std::make_shared<int>(0);
  long owners_in_undo = 0;
  const auto work = [&](std::stop_token stop) {
    told_before = stop.stop_requested();
    if (how == 0) abort(engine, id);
    engine.advance(2h);
    told_after = stop.stop_requested();
  };
  engine.world.scripts["a"] = {.steps = 1,
                               .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 if (how == 1 && run.ctx.timed_out()) return Say::fail("slow");
                                 if (how == 2 && run.ctx.timed_out()) return Say::retry("slow");
                                 if (how == 3 && run.ctx.timed_out()) return Say::done("slow");
                                 if (run.ctx.attempt() > 1) return Say::fail("enough");
                                 run.ctx.offload(work);
                                 if (how == 0) {  // else it begins before the time is over
                                   run.ctx.offload([&second, owned] { second += 1 + *owned; });
                                 }
                                 return Say::wait_for(1h);
                               },
                               .undo = [&](JobRun&) -> std::optional<Outcome> {
                                 owners_in_undo = owned.use_count();
                                 return usual();
                               }};
  engine.open();
  id = engine.submit("a");
  const long owners = owned.use_count();
  engine.run_to_the_end();

  CHECK_FALSE(told_before);
  CHECK(told_after);
  CHECK(second == 0);
  if (how != 3) CHECK(owners_in_undo == owners);  // it was destroyed before the undo
  CHECK(owned.use_count() == owners);
}

TEST_CASE("work of an undo that parks is told to stop, and the undo can be tried again") {
  const bool is_defect = GENERATE(false, true);
  EngineWorld engine;
  Event event;
  int begun = 0;
  bool was_told = false;
  const auto work = [&](const std::stop_token& stop) {
    if (++begun != 1) return;
    event.set();
    engine.run();  // the undo parks
    was_told = stop.stop_requested();
  };
  engine.world.scripts["a"] = {.steps = 2};
  engine.world.scripts["a"].run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 2) return Say::fail("no");
    return usual();
  };
  engine.world.scripts["a"].undo = [&](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 1) return usual();
    if (run.ctx.offload(work) != nullptr) return usual();
    if (!run.ctx.await(event)) return Say::wait();
    return is_defect ? Say::done("") : Say::fail("the disk is full");
  };
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(was_told);
  CHECK(engine.describe(id).parked);

  event.reset();
  engine.executor().operate().order(id, RepairVerb::kRetryNow, {.who = "me", .why = "again"},
                                    [](const Status& status) { CHECK(status.ok()); });
  engine.run();
  CHECK(begun == 2);
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
}

TEST_CASE("work is told to stop when its step ends and the engine cannot record that now") {
  EngineWorld engine;
  engine.max_live_procedures = 4;
  Event event;
  Event other;
  int begun = 0;
  bool was_told = false;
  const auto work = [&](const std::stop_token& stop) {
    if (++begun != 1) return;
    event.set();
    engine.run();  // there is no room for the children
    was_told = stop.stop_requested();
    event.reset();
  };
  engine.world.scripts["c"] = {.steps = 1};
  engine.world.scripts["other"] = waits_for(other);
  engine.world.scripts["a"].run = [&](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 1 || run.ctx.offload(work) != nullptr) return usual();
    if (!run.ctx.await(event)) return Say::wait();
    for (int i = 0; i < 3; ++i) run.spawn("c");
    return Say::next(2);
  };
  engine.open();
  engine.submit("other");
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(was_told);

  engine.advance(10min);
  CHECK(begun == 2);
  CHECK(engine.result(id).status.ok());
}

TEST_CASE("work whose step goes on without a time-out is not told to stop") {
  EngineWorld engine;
  bool told = true;
  engine.world.scripts["a"] = {.steps = 3, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 1) {
                                   run.ctx.offload([&](OffloadControl& control) {
                                     engine.run();
                                     told = control.stop_token().stop_requested();
                                   });
                                 }
                                 return usual();
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run_to_the_end();
  CHECK(engine.result(id).status.ok());
  CHECK_FALSE(told);
}

TEST_CASE(
    "explain says which procedures wait for offloaded work, for how long, and the root cause") {
  EngineWorld engine;
  ProcedureId root;
  const auto work = [&](OffloadControl& control) {
    engine.advance(5min);
    control.heartbeat();
    engine.advance(1min);
    CHECK(offload_reason(engine, ProcedureId{root.value + 1})->age == 6min);
    CHECK(offload_reason(engine, ProcedureId{root.value + 1})->heartbeat == 1min);
    abort(engine, root);
    const auto why = engine.executor().inspect().explain(root);
    REQUIRE(why->procedures.size() == 2);
    CHECK(why->procedures[0].reasons.front().kind == Kind::kTreeInFlight);
    CHECK(why->procedures[0].reasons.front().on == std::vector{ProcedureId{root.value + 1}});
    CHECK(why->root_causes == std::vector{ProcedureId{root.value + 1}});
    CHECK(offload_reason(engine, ProcedureId{root.value + 1})->age == 6min);
    const ProcedureId other = submit_beside(engine, "other");
    CHECK_THAT(words_of(engine, other), ContainsSubstring("offloaded work"));
  };
  engine.world.scripts["other"] = {.steps = 1, .locks = table()};
  engine.world.scripts["p"] = {.steps = 2, .children = {"a"}};
  engine.world.scripts["a"] = {
      .steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
        return run.ctx.offload(work) == nullptr ? std::optional(Say::wait()) : usual();
      }};
  engine.world.scripts["a"].locks = table();
  engine.open();
  root = engine.submit("p");
  engine.run_to_the_end();
  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
}

TEST_CASE(
    "an order that ends a tree is answered at once, and frees its locks when its work has ended") {
  EngineWorld engine;
  ProcedureId id;
  bool ended = false;
  std::vector<std::string> preview;
  Status bypassed(StatusCode::kUnknownOutcome, "not answered");
  const auto work = [&] {
    engine.world.journal.note("work begins");
    engine.advance(2h);
    REQUIRE(engine.describe(id).parked);
    submit_beside(engine, "other");
    preview = *engine.executor().operate().preview(id, RepairVerb::kBypass);
    CHECK(engine.executor().operate().preview(id, RepairVerb::kSkipStep).status().code() ==
          StatusCode::kUnavailable);
    engine.executor().operate().order(id, RepairVerb::kBypass, {.who = "ops", .why = "it hangs"},
                                      [&](const Status& status) { bypassed = status; });
    engine.run();
    CHECK(bypassed.to_string() == "OK");
    CHECK_FALSE(ended);
    CHECK(offload_reason(engine, id).has_value());
    engine.world.journal.note("work ends");
  };
  engine.world.scripts["other"] = {.steps = 1, .locks = table()};
  engine.retry = {.max_attempts = 1};
  engine.world.scripts["a"] = offloads_in(
      1, work, Say::wait_for(1h), [](JobRun&) -> Outcome { return Say::retry("too slow"); });
  engine.world.scripts["a"].locks = table();
  engine.open();
  id = engine.submit("a");
  engine.executor().async().wait(id, [&](const Result<ProcedureResult>&) { ended = true; });
  engine.run_to_the_end();

  CHECK(std::any_of(preview.begin(), preview.end(), [](const std::string& line) {
    return line.find("offloaded at step ONE still runs") != std::string::npos;
  }));
  CHECK(between(engine, "work begins", "work ends").empty());
  CHECK(engine.world.journal.count("do other.1") == 1);
  CHECK(ended);
  CHECK_THAT(engine.result(id).status.to_string(), ContainsSubstring("bypassed by ops"));
}

TEST_CASE("an order that ends a tree is kept when the process dies while work of the tree runs") {
  EngineWorld engine;
  ProcedureId id;
  engine.retry = {.max_attempts = 1};
  const auto work = [&] {
    engine.advance(2h);
    engine.executor().operate().order(id, RepairVerb::kBypass, {.who = "ops", .why = "it hangs"},
                                      [&](const Status& status) { CHECK(status.ok()); });
    engine.run();
    engine.faults().crash_before(engine.faults().commits() + 1, FaultStore::AfterCrash::kFail);
  };
  engine.world.scripts["a"] = offloads_in(
      1, work, Say::wait_for(1h), [](JobRun&) -> Outcome { return Say::retry("too slow"); });
  engine.open();
  id = engine.submit("a");
  engine.run();
  engine.open();
  CHECK(engine.executor().inspect().live_procedures() == 0);
  CHECK_THAT(engine.result(id).status.to_string(), ContainsSubstring("bypassed by ops"));
}

TEST_CASE(
    "an abort during the work of a procedure that is done undoes it when the work has ended") {
  EngineWorld engine;
  ProcedureId id;
  bool told = false;
  const auto work = [&](std::stop_token stop) {
    engine.world.journal.note("work begins");
    engine.run();
    CHECK(engine.describe(id).state == ProcedureState::kRunnable);
    abort(engine, id);
    told = stop.stop_requested();
    engine.world.journal.note("work ends");
  };
  engine.world.scripts["a"] = {.steps = 2, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 1) run.ctx.offload(work);
                                 return usual();
                               }};
  engine.open();
  id = engine.submit("a");
  engine.run_to_the_end();

  CHECK(told);
  CHECK(count(between(engine, "work begins", "work ends"), "undo a.2") == 0);
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.journal().back() == "undo a.1");
}

TEST_CASE("a procedure that is parked in an undo keeps its locks, unless they are per visit") {
  EngineWorld engine;
  const LockScope scope = GENERATE(LockScope::kOperation, LockScope::kStep, LockScope::kVisit);
  const bool with_work = GENERATE(false, true);
  CAPTURE(scope, with_work);
  bool mended = false;
  Event begun;
  const auto work = [&] {
    begun.set();
    engine.run();  // the undo parks
    submit_beside(engine, "other");
    CHECK(engine.world.journal.count("do other.1") == 0);  // the work goes on under the lock
  };
  engine.world.scripts["other"] = {.steps = 1, .locks = table()};
  engine.world.scripts["a"] = {.steps = 2,
                               .run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 2) return Say::fail("no");
                                 return usual();
                               },
                               .undo = [&](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step != 1 || mended) return usual();
                                 if (with_work) {
                                   run.ctx.offload(work);
                                   if (!run.ctx.await(begun)) return Say::wait();
                                 }
                                 return Say::fail("stuck");
                               },
                               .locks = table().scope(scope)};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  REQUIRE(engine.describe(id).parked);
  if (!with_work) engine.submit("other");
  engine.run();
  const bool kept = scope != LockScope::kVisit;
  CHECK(engine.describe(id).holds_locks == kept);
  CHECK(engine.world.journal.count("do other.1") == (kept ? 0 : 1));

  engine.crash_and_open();
  CHECK(engine.describe(id).holds_locks == kept);
  mended = true;
  CHECK(engine.executor().operate().retry_now(id, {.who = "ops", .why = "mended"}).ok());
  engine.run_to_the_end();
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
}

TEST_CASE("a procedure may have 1024 pieces of work outstanding, and one more fails its step") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 for (int i = 0; i < 1025; ++i) run.ctx.offload([] {});
                                 return Say::wait();
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run_to_the_end();
  CHECK_THAT(engine.result(id).status.to_string(), ContainsSubstring("1024 pieces"));
}

namespace {

// A callable that cannot be moved once it is in the place that the engine has made for it.
struct Heavy {
  explicit Heavy(int* moves) : moves(moves) {}
  Heavy(Heavy&& other) : moves(other.moves) {
    if (++*moves == 2) throw std::runtime_error("too heavy");
  }
  int operator()() const { return 7; }
  int* moves;
};

}  // namespace

TEST_CASE("a wait for work whose callable could not be moved is an error, not a wait for ever") {
  EngineWorld engine;
  int moves = 0;
  engine.world.scripts["a"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 try {
                                   (void)run.ctx.offload(Heavy(&moves));
                                 } catch (const std::runtime_error&) {
                                   return Say::wait();
                                 }
                                 return Say::done("it could be moved");
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK_THAT(engine.result(id).status.to_string(),
             ContainsSubstring("awaits what nobody can complete any more"));
}

TEST_CASE("a callable that can only be moved may be offloaded") {
  EngineWorld engine;
  engine.world.scripts["a"] = {
      .steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
        const auto* value = run.ctx.offload([owned = std::make_unique<int>(7)] { return *owned; });
        if (value == nullptr) return Say::wait();
        return Say::done(std::to_string(**value));
      }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.result(id).result == "7");
}

namespace {

// An executor with threads, under the test's clock.
struct Threaded {
  EngineWorld engine;
  Mutex log_mutex;
  std::vector<std::string> lines PV2_GUARDED_BY(log_mutex);

  ExecutorOptions options() {
    ExecutorOptions options = engine.options();
    options.workers = 2;
    options.store = memory(engine.disk, {.mode = MemoryStoreOptions::Mode::kThread});
    options.log = [this](LogLevel, std::string_view line) {
      MutexLock lock(log_mutex);
      lines.emplace_back(line);
    };
    return options;
  }
  bool logged(const std::string& part) {
    MutexLock lock(log_mutex);
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(part) != std::string::npos;
    });
  }
};

}  // namespace

TEST_CASE("offloaded work that hangs is listed, reported once, and again after a heartbeat") {
  Threaded threaded;
  EngineWorld& engine = threaded.engine;
  std::promise<OffloadControl*> runs;
  std::latch may_end(1);
  engine.world.scripts["hangs"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                     const auto* value = run.ctx.offload([&](OffloadControl& c) {
                                       runs.set_value(&c);
                                       may_end.wait();
                                     });
                                     return value == nullptr ? std::optional(Say::wait()) : usual();
                                   }};
  std::promise<RunningProcedure> first;
  std::promise<RunningProcedure> second;
  std::atomic<int> reports = 0;
  auto options = threaded.options();
  options.stuck_after = 10s;
  options.on_stuck = [&](const RunningProcedure& running) {
    (++reports == 1 ? first : second).set_value(running);
  };
  auto executor = *ProcedureExecutor::open(std::move(options));
  executor->start();
  const ProcedureId id = executor->submit(Job(engine.world, "hangs"))->id;
  OffloadControl* const control = runs.get_future().get();
  while (executor->inspect().running().size() != 1)
    std::this_thread::yield();  // until the step has ended

  engine.clock->advance(9s);
  const auto running = executor->inspect().running();
  REQUIRE(running.size() == 1);
  CHECK(running[0].id == id);
  CHECK(running[0].step_name == "ONE");
  CHECK(running[0].age == 9s);
  CHECK_FALSE(running[0].heartbeat.has_value());
  control->heartbeat();
  engine.clock->advance(9s);
  CHECK(executor->inspect().running()[0].heartbeat == 9s);
  engine.clock->advance(1s);
  const RunningProcedure reported = first.get_future().get();
  CHECK(reported.kind == RunningProcedure::Kind::kOffloaded);
  CHECK(reported.age == 19s);
  CHECK(reported.heartbeat == 10s);
  CHECK(threaded.logged("work offloaded by step ONE of procedure 1 (test.Job) has been running"));
  engine.clock->advance(1h);
  control->heartbeat();
  engine.clock->advance(10s);
  CHECK(second.get_future().get().heartbeat == 10s);
  engine.clock->advance(1h);
  may_end.count_down();
  CHECK(executor->wait(id).ok());
  executor->stop();
  CHECK(reports == 2);
  CHECK(executor->inspect().running().empty());
}

TEST_CASE("a limit of two lets two threads of the pool work at once") {
  Threaded threaded;
  EngineWorld& engine = threaded.engine;
  std::barrier both(2);
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  const auto work = [&] {
    const int now = ++running;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    both.arrive_and_wait();
    --running;
  };
  engine.world.scripts["encode"] = offloads_in(1, work, Say::wait());
  engine.world.scripts["encode"].locks =
      LockSet().key(kPlaces, LockMode::kShared).scope(LockScope::kStep);
  auto executor = *ProcedureExecutor::open(threaded.options());
  REQUIRE(executor->operate().set_limit(kPlaces, 2).ok());
  executor->start();
  std::vector<ProcedureId> ids;
  for (int i = 0; i < 8; ++i) ids.push_back(executor->submit(Job(engine.world, "encode"))->id);
  for (const ProcedureId id : ids) CHECK(executor->wait(id).ok());
  executor->stop();
  CHECK(most == 2);
}

namespace {

// Goes on while its work runs, under a lock per step that others want: so work may end while its
// procedure is queued. The sanitizer for threads sees whether its end reads what the scheduler
// writes.
class Restless final : public Procedure {
 public:
  static constexpr std::string_view kType = "test.Restless";
  static constexpr std::uint32_t kRuns = 30;
  explicit Restless(std::uint32_t number = 0) : number_(number) {}
  void fields(auto& f) {
    f.arg(1, "number", number_);
    f(2, "runs", runs_);
  }
  LockSet locks() const override {
    return LockSet()
        .server(std::to_string(number_ % 3), LockMode::kExclusive)
        .scope(LockScope::kStep);
  }
  Outcome execute(StepContext& ctx) override {
    if (++runs_ > kRuns) return done();
    ctx.offload([] { std::this_thread::yield(); });
    return again();
  }

 private:
  std::uint32_t number_;
  std::uint32_t runs_ = 0;
};

}  // namespace

TEST_CASE("offloaded work may end while its procedure waits for its next turn") {
  Threaded threaded;
  ExecutorOptions options = threaded.options();
  options.registry.add<Restless>();
  auto executor = *ProcedureExecutor::open(std::move(options));
  executor->start();
  std::vector<ProcedureId> ids;
  for (std::uint32_t i = 0; i < 30; ++i) ids.push_back(executor->submit(Restless(i))->id);
  for (const ProcedureId id : ids) CHECK(executor->wait(id)->state == ProcedureState::kSuccess);
  executor->stop();
}

TEST_CASE("a stop tells offloaded work to stop, and waits for it") {
  Threaded threaded;
  EngineWorld& engine = threaded.engine;
  std::promise<void> runs;
  std::atomic<bool> ended = false;
  engine.world.scripts["a"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 const auto* value = run.ctx.offload([&](std::stop_token stop) {
                                   std::latch told(1);
                                   const std::stop_callback tell(stop, [&] { told.count_down(); });
                                   runs.set_value();
                                   told.wait();
                                   ended = true;
                                 });
                                 return value == nullptr ? std::optional(Say::wait()) : usual();
                               }};
  auto executor = *ProcedureExecutor::open(threaded.options());
  executor->start();
  REQUIRE(executor->submit(Job(engine.world, "a")).ok());
  runs.get_future().wait();
  executor->stop();
  CHECK(ended);
}

TEST_CASE("while work waits to be told to stop, no other critical section asks for that again") {
  // How much an executor without threads does to abort a tree, with `looks` between any two pieces.
  const auto pieces = [](int looks) {
    EngineWorld engine;
    engine.world.scripts["a"] = {
        .steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
          return run.ctx.offload([] {}) == nullptr ? std::optional(Say::wait()) : usual();
        }};
    engine.open();
    const ProcedureId id = engine.submit("a");
    engine.executor().async().abort(id, {}, [](const Status&) {});
    std::size_t ran = 0;
    while (engine.executor().run_until_idle(1) == 1) {
      ++ran;
      for (int i = 0; i < looks; ++i) (void)engine.executor().inspect().describe(id);
    }
    CHECK(engine.result(id).state == ProcedureState::kRolledBack);
    return ran;
  };
  CHECK(pieces(50) == pieces(0));
}

}  // namespace pv2::testing::offloaded_work_test
