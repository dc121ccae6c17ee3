// SPDX-License-Identifier: Apache-2.0
//
// explain(): every kind of wait is named with its details, and followed to the procedure that waits
// for no other. (Section 10 of the reference: "why is it not moving?")

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <latch>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "support/engine_world.h"

namespace pv2::testing::explain_test {
namespace {

using namespace std::chrono_literals;
using Kind = WaitReason::Kind;

const auto kOrders = LockSet().table("shop", "orders", LockMode::kExclusive);
const auto kReadsOrders = LockSet().table("shop", "orders", LockMode::kShared);

// Answers `outcome` in step `step` each time; other steps have their effect.
JobScript stays_in(std::uint32_t step, Outcome outcome, LockSet locks = {}) {
  return {.run = [step, outcome](JobRun& run) -> std::optional<Outcome> {
            if (run.step != step) return std::nullopt;
            return outcome;
          },
          .locks = std::move(locks)};
}

JobScript asks_in(std::uint32_t step, LockSet locks = {}) {
  return {.run = [step](JobRun& run) -> std::optional<Outcome> {
            if (run.step != step) return std::nullopt;
            const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
            return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
          },
          .locks = std::move(locks)};
}

Explanation explain(ProcedureExecutor& executor, ProcedureId id) {
  auto answer = executor.inspect().explain(id);
  REQUIRE(answer.status().to_string() == "OK");
  REQUIRE_FALSE(answer->procedures.empty());
  REQUIRE(answer->procedures.front().id == id);
  return *std::move(answer);
}

// The reasons of one procedure of an explanation.
std::vector<WaitReason> reasons(const Explanation& explanation, ProcedureId id) {
  const Explanation::Procedure* const procedure = explanation.find(id);
  REQUIRE(procedure != nullptr);
  REQUIRE_FALSE(procedure->reasons.empty());
  return procedure->reasons;
}

WaitReason only_reason(const Explanation& explanation, ProcedureId id) {
  const auto all = reasons(explanation, id);
  REQUIRE(all.size() == 1);
  return all.front();
}

using Ids = std::vector<ProcedureId>;

}  // namespace

TEST_CASE(
    "a procedure that waits for a lock is explained by its holder and what the holder awaits") {
  EngineWorld engine;
  engine.world.scripts["holder"] = asks_in(2, kOrders);
  engine.world.scripts["waiter"] = {.locks = kOrders};
  engine.open();
  const ProcedureId holder = engine.submit("holder");
  engine.run();
  const ProcedureId waiter = engine.submit("waiter");
  engine.run();
  engine.clock->advance(90s);

  const Explanation why = explain(engine.executor(), waiter);
  const WaitReason lock = only_reason(why, waiter);
  CHECK(lock.kind == Kind::kLock);
  CHECK(to_string(lock.key) == "table shop:orders");
  CHECK(lock.on == Ids{holder});
  CHECK(lock.age == 90s);
  const WaitReason value = only_reason(why, holder);
  CHECK(value.kind == Kind::kValue);
  CHECK(value.count == 1);
  CHECK(why.root_causes == Ids{holder});
  CHECK(why.cycles.empty());
  CHECK(to_string(why) ==
        "procedure 2 (test.Job, step ONE) waits for table shop:orders, held by procedure 1, for "
        "90.0 s\n"
        "  procedure 1 (test.Job, step TWO) awaits 1 value");

  engine.world.answer_one("go on");
  engine.run();
  CHECK(only_reason(explain(engine.executor(), holder), holder).kind == Kind::kFinished);
}

TEST_CASE(
    "a reader behind a waiting writer is in line, and the line leads to the reader that holds") {
  EngineWorld engine;
  engine.world.scripts["reads"] = asks_in(2, kReadsOrders);
  engine.world.scripts["writes"] = {.locks = kOrders};
  engine.world.scripts["reads too"] = {.locks = kReadsOrders};
  engine.open();
  const ProcedureId reader = engine.submit("reads");
  engine.run();
  const ProcedureId writer = engine.submit("writes");
  const ProcedureId second = engine.submit("reads too");
  engine.run();

  const Explanation why = explain(engine.executor(), second);
  CHECK(only_reason(why, second).kind == Kind::kLine);
  CHECK(only_reason(why, second).on == Ids{writer});
  CHECK(only_reason(why, writer).kind == Kind::kLock);
  CHECK(only_reason(why, writer).on == Ids{reader});
  CHECK(why.root_causes == Ids{reader});
}

TEST_CASE(
    "a wait for a place at a limited key is explained by the procedures that have the places") {
  EngineWorld engine;
  const ResourceKey rack{ResourceClass::kHostFirst, "rack 7"};
  engine.world.scripts["first"] = asks_in(1, LockSet().key(rack, LockMode::kShared));
  engine.world.scripts["second"] = {.locks = LockSet().key(rack, LockMode::kShared)};
  engine.open();
  const std::uint32_t limit = GENERATE(0U, 1U);
  REQUIRE(engine.executor().operate().set_limit(rack, limit).ok());
  const ProcedureId first = engine.submit("first");
  engine.run();
  const ProcedureId second = engine.submit("second");
  engine.run();

  const Explanation why = explain(engine.executor(), second);
  const WaitReason reason = only_reason(why, second);
  CHECK(reason.kind == Kind::kLimit);
  CHECK(reason.key == rack);
  if (limit == 1) {
    CHECK(reason.on == Ids{first});
  } else {
    CHECK(why.root_causes == Ids{second});
    CHECK_THAT(to_string(why), ContainsSubstring("none is to be had"));
  }
}

TEST_CASE("a parent is explained by its children, and a child by its back-off and its last error") {
  EngineWorld engine;
  engine.retry = {.base = 10s, .cap = 60s, .jitter_percent = 0};
  engine.world.scripts["parent"] = {.children = {"quick", "retries"}};
  engine.world.scripts["quick"] = {.steps = 1};
  engine.world.scripts["retries"] = stays_in(1, Say::retry("the shop is closed"));
  engine.open();
  const ProcedureId parent = engine.submit("parent");
  engine.run();
  engine.advance(10s);
  engine.clock->advance(5s);

  const Explanation why = explain(engine.executor(), parent);
  const WaitReason children = only_reason(why, parent);
  CHECK(children.kind == Kind::kChildren);
  CHECK(children.count == 1);
  REQUIRE(children.on.size() == 1);
  const WaitReason retry = only_reason(why, children.on[0]);
  CHECK(retry.kind == Kind::kBackOff);
  CHECK(retry.attempt == 3);
  CHECK(retry.left == 15s);
  CHECK(retry.error.message() == "the shop is closed");
  CHECK(why.root_causes == children.on);
}

TEST_CASE(
    "a wait for time says how long, one for offloaded work or a value by when at the latest") {
  EngineWorld engine;
  Explanation why;
  engine.world.scripts["timer"] = stays_in(1, Say::wait_for(1h));
  engine.world.scripts["both"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
    (void)run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
    (void)run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
    (void)run.ctx.offload([&, id = run.ctx.id()] {
      engine.clock->advance(30min);
      why = *engine.executor().inspect().explain(id);
    });
    return Say::wait_for(2h);
  }};
  engine.open();
  const ProcedureId timer = engine.submit("timer");
  const ProcedureId both = engine.submit("both");
  engine.run();

  const WaitReason time = only_reason(explain(engine.executor(), timer), timer);
  CHECK(time.kind == Kind::kTimer);
  CHECK(time.left == 30min);
  CHECK(time.deadline == engine.clock->wall_now() + 30min);
  const auto two = reasons(why, both);
  REQUIRE(two.size() == 2);
  CHECK(two[0].kind == Kind::kValue);
  CHECK(two[0].count == 2);
  CHECK(two[0].left == 90min);
  CHECK(two[1].kind == Kind::kOffload);
  CHECK(two[1].count == 1);
}

TEST_CASE("a step that has what it awaits, and waits for a time, is explained by its deadline") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
    return value == nullptr ? Say::wait() : Say::wait_for(1h);
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.world.answer_one("not yet");
  engine.run();
  engine.clock->advance(20min);

  const WaitReason reason = only_reason(explain(engine.executor(), id), id);
  CHECK(reason.kind == Kind::kTimer);
  CHECK(reason.left == 40min);
}

TEST_CASE("in a worker's run one procedure runs, one waits for it, and one waits with its record") {
  EngineWorld engine;
  Explanation first;
  Explanation second;
  Explanation third;
  engine.world.scripts["first"] = {.steps = 1};
  engine.world.scripts["third"] = {.steps = 1};
  engine.world.scripts["second"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                      engine.clock->advance(20s);
                                      const ProcedureId id = run.ctx.id();
                                      first = *engine.executor().inspect().explain({id.value - 1});
                                      second = *engine.executor().inspect().explain(id);
                                      third = *engine.executor().inspect().explain({id.value + 1});
                                      return std::nullopt;
                                    }};
  engine.open();
  const ProcedureId a = engine.submit("first");
  const ProcedureId b = engine.submit("second");
  const ProcedureId c = engine.submit("third");
  engine.run();

  CHECK(only_reason(second, b).kind == Kind::kRunning);
  CHECK(only_reason(second, b).age == 20s);
  CHECK(only_reason(first, a).kind == Kind::kRun);
  CHECK(only_reason(first, a).on == Ids{b});
  CHECK(only_reason(third, c).kind == Kind::kTaken);
  CHECK(only_reason(third, c).on == Ids{b});
  CHECK(third.root_causes == Ids{b});
}

TEST_CASE("queued, being submitted and being committed are told apart") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  engine.world.scripts["b"] = {.steps = 1};
  engine.open();
  SECTION("queued") {
    engine.submit("a");
    const ProcedureId b = engine.submit("b");
    const WaitReason reason = only_reason(explain(engine.executor(), b), b);
    CHECK(reason.kind == Kind::kQueued);
    CHECK(reason.ahead == 1);
    CHECK(reason.count == 2);
  }
  SECTION("being committed") {
    engine.faults().hold_commit(engine.faults().commits() + 2);
    const ProcedureId a = engine.submit("a");
    engine.run();
    CHECK(only_reason(explain(engine.executor(), a), a).kind == Kind::kCommitting);
    engine.faults().release();
  }
  SECTION("being submitted") {
    engine.faults().hold_commit(engine.faults().commits() + 1);
    engine.executor().async().submit(Job(engine.world, "a"), {}, [](const Result<Submitted>&) {});
    engine.run();
    CHECK(only_reason(explain(engine.executor(), {1}), {1}).kind == Kind::kSubmitting);
    engine.faults().release();
  }
  engine.run();
}

TEST_CASE("a wait for a producer has lasted since the step began it, whatever came before") {
  const bool with_locks = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["producer"] = asks_in(1);
  ProcedureId producer;
  engine.world.scripts["waiter"] = asks_in(2, with_locks ? kOrders : LockSet());
  engine.world.scripts["waiter"].run = [&, asks = engine.world.scripts["waiter"].run](JobRun& run) {
    if (run.step == 1 && !run.ctx.timed_out()) return std::optional(Say::wait_for(100s));
    if (run.step == 2) run.ctx.completed_by(producer);
    return asks(run);
  };
  engine.open();
  producer = engine.submit("producer");
  engine.run();
  const ProcedureId waiter = engine.submit("waiter");
  engine.run();
  engine.advance(100s);
  engine.advance(7s);

  const auto all = reasons(explain(engine.executor(), waiter), waiter);
  const auto at = std::find_if(all.begin(), all.end(), [](const WaitReason& reason) {
    return reason.kind == Kind::kProducer;
  });
  REQUIRE(at != all.end());
  CHECK(at->on == Ids{producer});
  CHECK(at->age == 7s);
}

TEST_CASE("in a rollback one member has its turn, and the others wait for it") {
  EngineWorld engine;
  engine.retry = {.base = 10s, .cap = 60s, .jitter_percent = 0};
  engine.world.scripts["parent"] = {.children = {"sticks", "fails"}};
  engine.world.scripts["sticks"] = {
      .steps = 1, .undo = [](JobRun&) -> std::optional<Outcome> { return Say::retry("not yet"); }};
  engine.world.scripts["fails"] = stays_in(1, Say::fail("out of stock"));
  engine.open();
  const ProcedureId parent = engine.submit("parent");
  engine.run();

  const Explanation why = explain(engine.executor(), parent);
  const WaitReason turn = only_reason(why, parent);
  CHECK(turn.kind == Kind::kTurn);
  REQUIRE(turn.on.size() == 1);
  CHECK(why.root_causes == turn.on);
  const WaitReason undo = only_reason(why, turn.on[0]);
  CHECK(undo.kind == Kind::kBackOff);
  CHECK(undo.attempt == 2);
}

TEST_CASE("a last undo that is to be tried again waits for the work of its attempt before") {
  EngineWorld engine;
  Event begun;
  ProcedureId id;
  bool mended = false;
  std::optional<WaitReason> why;
  std::string words;
  const auto work = [&] {
    begun.set();
    engine.run();  // the undo parks
    mended = true;
    engine.executor().operate().order(id, RepairVerb::kRetryNow, {.who = "ops", .why = "mended"},
                                      [](const Status& status) { CHECK(status.ok()); });
    engine.run();
    why = only_reason(explain(engine.executor(), id), id);
    words = to_string(explain(engine.executor(), id));
  };
  engine.world.scripts["a"] = {.steps = 2,
                               .run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 2) return Say::fail("no");
                                 return usual();
                               },
                               .undo = [&](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step != 1 || mended) return usual();
                                 run.ctx.offload(work);
                                 if (!run.ctx.await(begun)) return Say::wait();
                                 return Say::fail("stuck");
                               }};
  engine.open();
  id = engine.submit("a");
  engine.run();

  REQUIRE(why);
  CHECK(why->kind == Kind::kOffload);
  CHECK_THAT(words, !ContainsSubstring("has ended"));
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
}

namespace {

// Asks once, and fails when it is answered.
JobScript fails_when_told(std::promise<Completion<std::string>>& asked) {
  return {.run = [&asked](JobRun& run) -> std::optional<Outcome> {
    const auto* value = run.ctx.await<std::string>([&](auto c) { asked.set_value(c); });
    return value == nullptr ? Say::wait() : Say::fail("out of stock");
  }};
}

}  // namespace

TEST_CASE("a failed tree whose member is in flight says whose step it waits for") {
  EngineWorld engine;
  std::promise<Completion<std::string>> slow_asked;
  std::promise<Completion<std::string>> fails_asked;
  std::promise<ProcedureId> slow_runs;
  std::latch slow_may_end(1);
  engine.world.scripts["parent"] = {.children = {"slow", "fails"}};
  engine.world.scripts["slow"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
    if (run.ctx.await<std::string>([&](auto c) { slow_asked.set_value(c); }) == nullptr) {
      return Say::wait();
    }
    slow_runs.set_value(run.ctx.id());
    slow_may_end.wait();
    return std::nullopt;
  }};
  engine.world.scripts["fails"] = fails_when_told(fails_asked);
  const auto executor = open_with_threads(engine, nullptr);
  const ProcedureId parent = executor->submit(Job(engine.world, "parent"))->id;
  slow_asked.get_future().get()("go on");
  const ProcedureId slow = slow_runs.get_future().get();
  fails_asked.get_future().get()("go on");

  Explanation why = explain(*executor, parent);
  while (only_reason(why, parent).kind != Kind::kTreeInFlight) {  // until the failure is published
    std::this_thread::yield();
    why = explain(*executor, parent);
  }
  CHECK(only_reason(why, parent).on == Ids{slow});
  CHECK(only_reason(why, slow).kind == Kind::kRunning);
  CHECK(why.root_causes == Ids{slow});
  slow_may_end.count_down();
  CHECK(executor->wait(parent)->state == ProcedureState::kRolledBack);
}

TEST_CASE("a parked tree names the member that is stuck and why, a quarantined one the reason") {
  EngineWorld engine;
  engine.world.scripts["parent"] = {.children = {"cannot", "fails"}};
  engine.world.scripts["cannot"] = {.steps = 1, .undo = [](JobRun&) -> std::optional<Outcome> {
                                      return Say::fail("the parcel is gone");
                                    }};
  engine.world.scripts["fails"] = stays_in(1, Say::fail("out of stock"));
  engine.world.scripts["final"] = asks_in(1);
  engine.open();
  const ProcedureId parent = engine.submit("parent");
  engine.run();

  const Explanation why = explain(engine.executor(), parent);
  const WaitReason parked = only_reason(why, parent);
  CHECK(parked.kind == Kind::kParked);
  CHECK_THAT(parked.error.to_string(), ContainsSubstring("the parcel is gone"));
  REQUIRE(parked.on.size() == 1);
  CHECK(only_reason(why, parked.on[0]).kind == Kind::kParked);
  CHECK(why.root_causes == parked.on);

  const ProcedureId final = engine.submit<FinalJob>("final");
  engine.run();
  ExecutorOptions options = engine.options();
  options.registry = ProcedureRegistry();
  options.registry.add<Job>(engine.world);
  engine.open(std::move(options));
  const WaitReason quarantined = only_reason(explain(engine.executor(), final), final);
  CHECK(quarantined.kind == Kind::kQuarantined);
  CHECK_THAT(quarantined.error.to_string(), ContainsSubstring("test.FinalJob"));
}

TEST_CASE("a cycle of waits is cut and named") {
  EngineWorld engine;
  const auto goods = LockSet().table("shop", "goods", LockMode::kExclusive);
  engine.world.scripts["older"] = {.children = {"older child"}, .locks = kOrders};
  engine.world.scripts["older child"] = {.steps = 1, .locks = goods};
  engine.world.scripts["younger"] = {.children = {"younger child"}, .locks = goods};
  engine.world.scripts["younger child"] = {.steps = 1, .locks = kOrders};
  auto options = engine.options();
  options.deadlock_policy = DeadlockPolicy::kReport;
  engine.open(std::move(options));
  const ProcedureId older = engine.submit("older");
  const ProcedureId younger = engine.submit("younger");
  engine.run();

  const Explanation why = explain(engine.executor(), older);
  CHECK(why.procedures.size() == 4);
  CHECK(why.root_causes.empty());
  REQUIRE(why.cycles.size() == 1);
  CHECK(why.cycles[0].size() == 4);
  CHECK(why.cycles[0][0] == older);
  CHECK(why.find(younger) != nullptr);
  CHECK_THAT(to_string(why), ContainsSubstring("they wait in a cycle: 1 -> "));
}

TEST_CASE("an explanation is bounded however many procedures are waited for") {
  EngineWorld engine;
  JobScript& parent = engine.world.scripts["parent"];
  for (int i = 0; i < 200; ++i) parent.children.push_back("child");
  engine.world.scripts["child"] = asks_in(1);
  for (int i = 0; i < 100; ++i)
    engine.world.scripts["r" + std::to_string(i)] = asks_in(1, kReadsOrders);
  engine.world.scripts["writes"] = {.locks = kOrders};
  engine.open();
  const ProcedureId id = engine.submit("parent");
  for (int i = 0; i < 100; ++i) engine.submit("r" + std::to_string(i));
  engine.run();
  const ProcedureId writer = engine.submit("writes");
  engine.run();

  const Explanation children = explain(engine.executor(), id);
  const WaitReason reason = only_reason(children, id);
  CHECK(reason.count == 200);
  CHECK(reason.on.size() == 8);
  CHECK(reason.more == 192);
  CHECK(children.procedures.size() == 9);
  const WaitReason lock = only_reason(explain(engine.executor(), writer), writer);
  CHECK(lock.on.size() == 8);
  CHECK(lock.more == 92);
}

namespace {

constexpr std::size_t kMany = 600;  // more members than one explanation looks at

// A parent of kMany children that do what `others` says, except for the one at `place`.
void script_many(EngineWorld& engine, const std::string& others, std::size_t place,
                 const std::string& one) {
  JobScript& parent = engine.world.scripts["parent"];
  parent.children.assign(kMany, others);
  parent.children[place] = one;
}

ProcedureId child_at(ProcedureId parent, std::size_t place) { return {parent.value + 1 + place}; }

// Calls `call` when it is destroyed.
struct AtEnd {
  explicit AtEnd(std::function<void()> call) : call(std::move(call)) {}
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;
  ~AtEnd() { call(); }
  std::function<void()> call;
};

}  // namespace

TEST_CASE("the member whose step a large failed tree waits for is named wherever it is") {
  EngineWorld engine;
  const std::size_t place = GENERATE(std::size_t{0}, kMany - 2);
  const bool offloads = GENERATE(false, true);
  std::promise<ProcedureId> slow_runs;
  std::promise<Completion<std::string>> fails_asked;
  std::latch slow_may_end(1);
  script_many(engine, "asks", place, "slow");
  engine.world.scripts["parent"].children.back() = "fails";
  engine.world.scripts["asks"] = asks_in(1);
  engine.world.scripts["slow"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
    const auto work = [&, id = run.ctx.id()] {
      slow_runs.set_value(id);
      slow_may_end.wait();
    };
    if (offloads) {
      (void)run.ctx.offload(work);
      return Say::wait();
    }
    work();
    return std::nullopt;
  }};
  engine.world.scripts["fails"] = fails_when_told(fails_asked);
  const auto executor = open_with_threads(engine, nullptr);
  const ProcedureId parent = executor->submit(Job(engine.world, "parent"))->id;
  const ProcedureId slow = slow_runs.get_future().get();
  fails_asked.get_future().get()("go on");

  // Until the failure is published, and the wait of the slow one.
  Explanation why = explain(*executor, parent);
  const auto waits = [&] {
    const Explanation::Procedure* const member = why.find(slow);
    return member == nullptr || member->reasons.size() == 1;
  };
  while (only_reason(why, parent).kind != Kind::kTreeInFlight || !waits()) {
    std::this_thread::yield();
    why = explain(*executor, parent);
  }
  const Ids on = only_reason(why, parent).on;
  CHECK(std::find(on.begin(), on.end(), slow) != on.end());
  CHECK(only_reason(why, slow).kind == (offloads ? Kind::kOffload : Kind::kRunning));
  slow_may_end.count_down();
  CHECK(executor->wait(parent)->state == ProcedureState::kRolledBack);
}

TEST_CASE("members in flight that an explanation does not come to are counted") {
  EngineWorld engine;
  std::size_t left = 0;  // pieces of work that have not ended
  std::optional<WaitReason> why;
  std::size_t left_then = 0;
  ProcedureId parent;
  script_many(engine, "works", kMany - 1, "fails");
  engine.world.scripts["works"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
    const auto at_end = std::make_shared<AtEnd>([&] {
      const WaitReason reason = only_reason(explain(engine.executor(), parent), parent);
      if (!why && reason.kind == Kind::kTreeInFlight) {
        why = reason;
        left_then = left;
      }
      --left;
    });
    ++left;
    (void)run.ctx.offload([at_end] {});
    return Say::wait();
  }};
  engine.world.scripts["fails"] = stays_in(1, Say::fail("out of stock"));
  engine.open();
  parent = engine.submit("parent");
  engine.run();

  REQUIRE(why.has_value());
  CHECK(why->on.size() == 8);
  CHECK(why->on.size() + why->more == left_then);
  CHECK(left_then > 512);
  CHECK(engine.result(parent).state == ProcedureState::kRolledBack);
}

TEST_CASE("the member at which a large tree is parked is named, and says why") {
  EngineWorld engine;
  const std::size_t place = GENERATE(std::size_t{1}, kMany - 2);
  script_many(engine, "quick", place, "cannot");
  engine.world.scripts["parent"].children.back() = "fails";
  engine.world.scripts["quick"] = {.steps = 1};
  engine.world.scripts["cannot"] = {.steps = 1, .undo = [](JobRun&) -> std::optional<Outcome> {
                                      return Say::fail("the parcel is gone");
                                    }};
  engine.world.scripts["fails"] = asks_in(1);
  engine.open();
  const ProcedureId parent = engine.submit("parent");
  engine.run();
  REQUIRE(engine.executor().abort(parent, {.reason = "no", .who = "me"}).ok());
  engine.run();

  const ProcedureId cannot = child_at(parent, place);
  for (const ProcedureId id : {parent, child_at(parent, 0)}) {
    const Explanation why = explain(engine.executor(), id);
    const WaitReason reason = only_reason(why, id);
    CHECK(reason.kind == Kind::kParked);
    CHECK(reason.on == Ids{cannot});
    CHECK(reason.more == 0);
    CHECK_THAT(reason.error.to_string(), ContainsSubstring("the parcel is gone"));
    CHECK(why.root_causes == Ids{cannot});
  }
  const ProcedureId undone = child_at(parent, kMany - 1);
  CHECK(only_reason(explain(engine.executor(), undone), undone).kind == Kind::kFinished);
}

TEST_CASE(
    "of many children one that runs or is parked is named, and one that is not found counts") {
  EngineWorld engine;
  engine.retry.max_attempts = 1;
  std::optional<Explanation> why;
  ProcedureId parent;
  const std::string one = GENERATE(as<std::string>(), "asks", "gives up", "runs");
  script_many(engine, "quick", 1, one);
  engine.world.scripts["quick"] = {.steps = 1};
  engine.world.scripts["asks"] = asks_in(1);
  engine.world.scripts["gives up"] = stays_in(1, Say::retry("the shop is closed"));
  engine.world.scripts["runs"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
    if (run.ctx.await<std::string>([&](auto c) { run.world.ask(c); }) == nullptr) {
      return Say::wait();
    }
    if (!why) why = explain(engine.executor(), parent);
    return std::nullopt;
  }};
  engine.open();
  parent = engine.submit("parent");
  engine.run();
  if (one == "runs") {
    engine.world.answer_one("go on");
    engine.run();
  } else {
    why = explain(engine.executor(), parent);
  }

  REQUIRE(why.has_value());
  const WaitReason reason = only_reason(*why, parent);
  CHECK(reason.kind == Kind::kChildren);
  CHECK(reason.count == 1);
  if (one == "asks") {
    CHECK(reason.on.empty());
    CHECK(reason.more == 1);
    CHECK(why->root_causes.empty());
    CHECK_THAT(to_string(*why), ContainsSubstring("1 child to finish, 1 of them not named here"));
  } else {
    CHECK(reason.on == Ids{child_at(parent, 1)});
    CHECK(reason.more == 0);
    CHECK(why->root_causes == reason.on);
  }
}

TEST_CASE("a procedure that waits for one that is left out is no root cause") {
  EngineWorld engine;
  for (int i = 0; i < 70; ++i) {
    engine.world.scripts[std::to_string(i)].children = {std::to_string(i + 1)};
  }
  engine.world.scripts["70"] = asks_in(1);
  engine.open();
  const ProcedureId top = engine.submit("0");
  engine.run();

  const Explanation why = explain(engine.executor(), top);
  CHECK(why.procedures.size() == 64);
  CHECK(why.left_out == 1);
  CHECK(why.root_causes.empty());
}

TEST_CASE("a reason that names nobody says in words how many there are") {
  WaitReason reason;
  reason.kind = Kind::kTreeInFlight;
  reason.more = 3;
  CHECK_THAT(to_string(reason), ContainsSubstring("of at least 3 not named here"));
  reason.more = 0;
  CHECK(to_string(reason) == "stands still until its tree is undone, or ended by an operator");
}

TEST_CASE("explain says that a procedure has ended, never was, or stands still with its executor") {
  EngineWorld engine;
  engine.world.scripts["fails"] = stays_in(1, Say::fail("out of stock"));
  engine.world.scripts["asks"] = asks_in(1);
  engine.world.scripts["quick"] = {.steps = 1};
  engine.open();
  const ProcedureId failed = engine.submit("fails");
  const ProcedureId asks = engine.submit("asks");
  engine.run();

  const WaitReason ended = only_reason(explain(engine.executor(), failed), failed);
  CHECK(ended.kind == Kind::kFinished);
  CHECK(ended.error.message() == "out of stock");
  CHECK(engine.executor().inspect().explain({77}).status().code() == StatusCode::kNotFound);
  CHECK_THAT(engine.executor().inspect().explain({77}).status().to_string(),
             ContainsSubstring("never did"));

  engine.faults().fail_commit(engine.faults().commits() + 1,
                              Status(StatusCode::kIoError, "the disk is gone"));
  engine.world.answer_one("go on");
  engine.run();
  const WaitReason stopped = only_reason(explain(engine.executor(), asks), asks);
  CHECK(stopped.kind == Kind::kStopped);
  CHECK_THAT(stopped.error.to_string(), ContainsSubstring("the disk is gone"));
}

TEST_CASE("explanations asked for while procedures run on other threads are sound") {
  EngineWorld engine;
  engine.world.scripts["parent"] = {.children = {"child", "child"}, .locks = kOrders};
  engine.world.scripts["child"] = {.steps = 2};
  engine.world.scripts["fails"] = {.children = {"child", "bad"}, .locks = kReadsOrders};
  engine.world.scripts["bad"] = stays_in(2, Say::fail("bad"));
  engine.world.scripts["waits"] = stays_in(1, Say::wait_for(1h));
  const auto executor = open_with_threads(engine, nullptr);
  std::atomic<bool> stop = false;
  std::latch asked(1);
  bool first = true;
  std::thread asker([&] {
    while (!stop) {
      for (std::uint64_t id = 1; id <= 400; ++id) {
        const auto why = executor->inspect().explain({id});
        if (!why.ok()) continue;
        if (std::exchange(first, false)) asked.count_down();
        for (const auto& procedure : why->procedures) {
          if (procedure.reasons.empty()) std::abort();
        }
        (void)to_string(*why);
      }
    }
  });
  Ids submitted;
  for (int i = 0; i < 60; ++i) {
    submitted.push_back(executor->submit(Job(engine.world, i % 3 == 0 ? "fails" : "parent"))->id);
  }
  submitted.push_back(executor->submit(Job(engine.world, "waits"))->id);
  asked.wait();  // at the latest for this one
  REQUIRE(executor->abort(submitted.back()).ok());
  for (const ProcedureId id : submitted) CHECK(executor->wait(id).ok());
  stop = true;
  asker.join();
}

TEST_CASE(
    "of very many events and signals that are awaited, the first are named, the rest counted") {
  EngineWorld engine;
  const std::size_t many = GENERATE(8U, 9U, 1000U);
  std::vector<Event> events;
  for (std::size_t i = 0; i < many; ++i) events.emplace_back("e" + std::to_string(i));
  engine.world.scripts["a"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
    for (std::size_t i = 0; i < many; ++i) {
      run.ctx.await(events[i]);
      (void)run.ctx.signal("s" + std::to_string(i));
      run.ctx.await<std::string>([&](auto completion) { run.world.ask(completion); });
    }
    return Say::wait();
  }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();

  const Explanation why = explain(engine.executor(), id);
  std::map<Kind, std::size_t> named;
  std::map<Kind, std::size_t> others;
  for (const WaitReason& reason : reasons(why, id)) {
    ++named[reason.kind];
    others[reason.kind] += reason.count;
  }
  CHECK(named ==
        std::map<Kind, std::size_t>{{Kind::kEvent, 8}, {Kind::kSignal, 8}, {Kind::kValue, 1}});
  CHECK(others == std::map<Kind, std::size_t>{
                      {Kind::kEvent, many - 8}, {Kind::kSignal, many - 8}, {Kind::kValue, many}});
  CHECK(why.root_causes == Ids{id});
  if (many == 9) {
    CHECK_THAT(to_string(why), ContainsSubstring("awaits the event 'e7', and 1 other event\n") &&
                                   ContainsSubstring("signal 's7', and 1 other signal"));
  }
}

}  // namespace pv2::testing::explain_test
