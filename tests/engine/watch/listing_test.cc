// SPDX-License-Identifier: Apache-2.0
//
// Listings: pages in order of id, filters, fields from the published image, histories; and that
// they show nothing that is not durable. (Row 126; section 7 of the design.)

#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "support/engine_world.h"

namespace pv2::testing::listing_test {
namespace {

using namespace std::chrono_literals;

const auto kOrders = LockSet().table("shop", "orders", LockMode::kExclusive);

JobScript asks_in(std::uint32_t step, LockSet locks = {}) {
  return {.run = [step](JobRun& run) -> std::optional<Outcome> {
            if (run.step != step) return std::nullopt;
            run.note = "asked";
            const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
            return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
          },
          .locks = std::move(locks)};
}

std::vector<std::uint64_t> ids(const ProcedurePage& page) {
  std::vector<std::uint64_t> values;
  for (const ProcedureInfo& info : page.procedures) values.push_back(info.id.value);
  return values;
}

using Values = std::vector<std::uint64_t>;

// A procedure whose fields() throws while `*throws`.
class Touchy final : public Procedure {
 public:
  static constexpr std::string_view kType = "test.Touchy";
  explicit Touchy(bool* throws, std::string name = {}) : throws_(throws), name_(std::move(name)) {}
  explicit Touchy(bool& throws) : throws_(&throws) {}
  void fields(auto& f) {
    if (*throws_) throw std::runtime_error("not for your eyes");
    f.arg(1, "name", name_);
  }
  Outcome execute(StepContext&) override { return wait_for(std::chrono::hours(1)); }

 private:
  bool* throws_;
  std::string name_;
};

// Ends at once, or after an hour.
struct Region final : Procedure {
  static constexpr std::string_view kType = "test.Region";
  static constexpr std::string_view kCountedAs = "regions";
  bool ends = false;
  explicit Region(bool does_end = false) : ends(does_end) {}
  void fields(auto& f) { f.arg(1, "ends", ends); }
  Outcome execute(StepContext& ctx) override {
    return ends || ctx.timed_out() ? done() : wait_for(std::chrono::hours(1));
  }
};

struct Log final : Procedure {
  static constexpr std::string_view kType = "test.Log";
  static constexpr std::string_view kCountedAs = "logs";
  void fields(auto& /*f*/) {}
  Outcome execute(StepContext&) override { return done(); }
};

enum class MoveStep { kRegions = 1, kLogsToo = 2, kEnd = 3 };

// Moves two regions; then two regions and a log.
class Move final : public StateMachineProcedure<MoveStep> {
 public:
  static constexpr std::string_view kType = "test.Move";
  static constexpr auto kSteps =
      steps(step(MoveStep::kRegions, "REGIONS", kNoUndo),
            step(MoveStep::kLogsToo, "LOGS_TOO", kNoUndo), step(MoveStep::kEnd, "END", kNoUndo));
  void fields(auto& f) { f(1, "moves", moves_); }
  [[nodiscard]] std::string progress() const override {
    return moves_ == 0 ? "" : "move " + std::to_string(moves_);
  }
  Flow execute_from_state(MoveStep step, StepContext& ctx) override {
    if (step == MoveStep::kEnd) return done();
    ++moves_;
    ctx.spawn(Region(true));
    ctx.spawn(Region(false));
    if (step == MoveStep::kRegions) return next(MoveStep::kLogsToo);
    ctx.spawn(Log());
    return next(MoveStep::kEnd);
  }

 private:
  std::uint32_t moves_ = 0;
};

std::string told(const ProcedureInfo& info) {
  return fmt::format("{}/{}: {}", info.children_done, info.children_total, info.progress);
}

}  // namespace

TEST_CASE("a listing tells how many children of how many have ended, in the words of their type") {
  const bool restarts = GENERATE(false, true);
  EngineWorld engine;
  const auto opens = [&] {
    auto options = engine.options();
    options.registry.add<Region>().add<Log>().add<Move>();
    engine.open(std::move(options));
  };
  opens();
  const auto progress = [&](ProcedureId id) {
    if (restarts) {
      engine.close();
      opens();
      engine.run();
    }
    return engine.describe(id);
  };
  const auto move = engine.executor().submit(Move());
  REQUIRE(move.ok());
  CHECK(told(engine.describe(move->id)) == "0/0: ");
  engine.run();
  CHECK(told(progress(move->id)) == "1/2: 1 of 2 regions; move 1");
  const auto page = engine.executor().inspect().list();
  CHECK(told(page.at(0)) == "1/2: 1 of 2 regions");
  CHECK(told(page.back()) == "0/0: ");

  // Two types in one join are counted under the name that every child has.
  engine.advance(1h);
  CHECK(told(progress(move->id)) == "2/3: 2 of 3 children; move 2");
}

TEST_CASE("a procedure with only its first record is listed as changed when that was made") {
  EngineWorld engine;
  engine.world.scripts["parent"] = {.children = {"child"}};
  engine.world.scripts["child"] = asks_in(1);
  engine.world.scripts["later"] = {.steps = 1};
  engine.open();
  engine.clock->advance(3s);
  const ProcedureId parent = engine.submit("parent");
  const ProcedureId later = engine.submit("later", {.delay = 1h});
  CHECK(engine.describe(parent).updated == engine.describe(parent).submitted);
  CHECK(engine.describe(later).updated == engine.describe(later).submitted);
  engine.clock->advance(4s);
  engine.run();

  const auto children = engine.executor().inspect().list({.root = parent, .is_root = false});
  REQUIRE(children.procedures.size() == 1);
  CHECK(children.procedures[0].updated == engine.clock->wall_now());
  const std::vector<std::string> before = in_words(engine.executor().inspect().list());
  engine.crash_and_open();
  CHECK(in_words(engine.executor().inspect().list()) == before);
}

TEST_CASE("a procedure that waited for its locks is listed as changed when they were granted") {
  EngineWorld engine;
  engine.world.scripts["holder"] = asks_in(1, kOrders);
  engine.world.scripts["waiter"] = asks_in(1, kOrders);
  engine.open();
  engine.submit("holder");
  const ProcedureId waiter = engine.submit("waiter");
  engine.run();
  engine.clock->advance(5s);
  engine.world.answer_one("go");
  engine.run();
  CHECK(engine.describe(waiter).holds_locks);
  CHECK(engine.describe(waiter).updated == engine.clock->wall_now());
  const std::vector<std::string> before = in_words(engine.executor().inspect().list());
  engine.crash_and_open();
  CHECK(in_words(engine.executor().inspect().list()) == before);
}

TEST_CASE("a procedure that runs and waits again without a record is not listed as changed") {
  EngineWorld engine;
  engine.world.scripts["asks twice"] = {
      .steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
        run.world.journal.note("run");
        const auto* one = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
        const auto* two = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
        return one == nullptr || two == nullptr ? std::optional(Say::wait()) : std::nullopt;
      }};
  engine.open();
  const ProcedureId id = engine.submit("asks twice");
  engine.run();
  engine.clock->advance(5s);
  engine.world.answer_one("one");
  engine.run();
  CHECK(engine.world.journal.count("run") == 2);
  CHECK(engine.describe(id).updated == engine.describe(id).submitted);
}

TEST_CASE("a page with a limit of 0 is empty") {
  EngineWorld engine;
  engine.world.scripts["asks"] = asks_in(1);
  engine.open();
  const ProcedureId first = engine.submit("asks");
  engine.submit("asks");
  engine.run();
  CHECK(engine.executor().inspect().list({}, {}, 0).procedures.empty());
  const ProcedurePage page = engine.executor().inspect().list({}, first, 0);
  CHECK(page.procedures.empty());
  CHECK(page.next == first);
}

TEST_CASE("pages are in order of id, end where nothing is left, and miss nothing that stays") {
  EngineWorld engine;
  engine.world.scripts["asks"] = asks_in(1);
  engine.world.scripts["quick"] = {.steps = 1};
  engine.open();
  Values all;
  for (int i = 0; i < 7; ++i) {
    all.push_back(engine.submit("asks").value);
    engine.submit("quick");
  }
  engine.run();

  const ProcedurePage first = engine.executor().inspect().list({}, {}, 3);
  CHECK(ids(first) == Values(all.begin(), all.begin() + 3));
  CHECK(first.next.value == all[2]);
  engine.submit("asks");  // after all others
  Values paged = ids(first);
  ProcedureId next = first.next;
  while (next) {
    const ProcedurePage page = engine.executor().inspect().list({}, next, 3);
    for (const std::uint64_t id : ids(page)) paged.push_back(id);
    next = page.next;
  }
  CHECK(Values(paged.begin(), paged.begin() + 7) == all);
  CHECK(paged.size() == 8);
  CHECK(engine.executor().inspect().list({}, {1'000'000}, 3).procedures.empty());
  CHECK(engine.executor().inspect().list().size() == 8);
}

TEST_CASE("each filter keeps what it names, and filters combine") {
  EngineWorld engine;
  engine.world.scripts["parent"] = {.children = {"asks"}};
  engine.world.scripts["asks"] = asks_in(1);
  engine.world.scripts["locks"] = asks_in(1, kOrders);
  engine.world.scripts["waits"] = {.locks = kOrders};
  engine.world.scripts["times"] = {.run = [](JobRun&) { return Say::wait_for(24h); }};
  engine.world.scripts["stuck"] = {.steps = 2,
                                   .run = [](JobRun& run) -> std::optional<Outcome> {
                                     if (run.step == 2) return Say::fail("no");
                                     return std::nullopt;
                                   },
                                   .undo = [](JobRun&) { return Say::fail("cannot"); }};
  engine.open();
  const std::uint64_t parent = engine.submit("parent", {.owner = "alice"}).value;
  engine.run();
  engine.advance(1h);
  const std::uint64_t locks = engine.submit("locks", {.owner = "bob"}).value;
  engine.run();
  const std::uint64_t waits = engine.submit("waits", {.owner = "bob"}).value;
  const std::uint64_t final = engine.submit<FinalJob>("times").value;
  const std::uint64_t stuck = engine.submit("stuck").value;
  engine.run();
  const std::uint64_t child = parent + 1;
  const auto& executor = engine.executor();

  CHECK(ids(executor.inspect().list({.state = ProcedureState::kWaiting})) == Values{parent});
  CHECK(ids(executor.inspect().list({.type = "test.FinalJob"})) == Values{final});
  CHECK(ids(executor.inspect().list({.owner = "bob"})) == Values{locks, waits});
  CHECK(ids(executor.inspect().list({.root = {parent}})) == Values{parent, child});
  CHECK(ids(executor.inspect().list({.is_root = false})) == Values{child});
  CHECK(
      ids(executor.inspect().list({.entity = ResourceKey{ResourceClass::kTable, "shop:orders"}})) ==
      Values{locks, waits});
  CHECK(ids(executor.inspect().list({.older_than = 1h})) == Values{parent, child});
  CHECK(ids(executor.inspect().list({.older_than = 1h + 1us})).empty());
  CHECK(ids(executor.inspect().list({.parked = true})) == Values{stuck});
  CHECK(ids(executor.inspect().list({.quarantined = true})).empty());
  CHECK(ids(executor.inspect().list(
            {.owner = "bob", .entity = ResourceKey{ResourceClass::kTable, "shop:orders"}}, {locks},
            1)) == Values{waits});
}

TEST_CASE("each member of a parked tree says why it is parked, and one that was undone is not") {
  EngineWorld engine;
  engine.world.scripts["parent"] = {.children = {"quick", "cannot", "last", "fails"}};
  engine.world.scripts["quick"] = {.steps = 1};
  engine.world.scripts["last"] = asks_in(1);
  engine.world.scripts["cannot"] = asks_in(1);
  engine.world.scripts["cannot"].steps = 1;
  engine.world.scripts["cannot"].undo = [](JobRun&) {
    return std::optional(Say::fail("the parcel is gone"));
  };
  engine.world.scripts["fails"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 1) return std::nullopt;
    const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
    return value == nullptr ? Say::wait() : Say::fail("out of stock");
  }};
  engine.open();
  const ProcedureId parent = engine.submit("parent");
  engine.run();
  while (engine.world.answer_one("go on")) engine.run();

  const std::uint64_t first = parent.value;
  const Values parked{first, first + 1, first + 2, first + 4};
  const std::string why = "procedure " + std::to_string(first + 2) +
                          " is parked: cannot undo step ONE: the parcel is gone";
  CHECK(ids(engine.executor().inspect().list({.parked = true})) == parked);
  CHECK(engine.describe({first + 1}).error.message() == why);
  CHECK(engine.describe({first + 2}).error.message() == "cannot undo step ONE: the parcel is gone");
  for (const ProcedureId id : {parent, ProcedureId{first + 4}}) {
    const Status error = engine.describe(id).error;
    CHECK(error.code() == StatusCode::kFailedPrecondition);
    CHECK_THAT(std::string(error.message()), StartsWith("out of stock; "));
    CHECK_THAT(std::string(error.message()), ContainsSubstring(why));
  }
  const ProcedureInfo undone = engine.describe({first + 3});
  CHECK(undone.state == ProcedureState::kRolledBack);
  CHECK_FALSE(undone.parked);
  CHECK(undone.error.ok());
}

namespace {

// A job "top" that spawns `before`, if it is not empty, and then two parts that fail and whose undo
// is parked. Their failures are only reported.
void script_parked_parts(EngineWorld& engine, const std::string& before = "") {
  engine.world.scripts["top"] = {.run = [before](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 2) return std::nullopt;
    if (!before.empty()) run.spawn(before);
    for (int i = 0; i < 2; ++i) {
      run.ctx.spawn(Job(run.world, "part"), {.on_failure = OnFailure::kReport});
    }
    return run.advance();
  }};
  engine.world.scripts["part"] = {
      .children = {"cannot"}, .run = [](JobRun& run) -> std::optional<Outcome> {
        return run.step == 3 ? std::optional(Say::fail("out of stock")) : std::nullopt;
      }};
  engine.world.scripts["cannot"] = {
      .steps = 1, .undo = [](JobRun&) { return std::optional(Say::fail("the parcel is gone")); }};
}

}  // namespace

TEST_CASE("a part of a tree that is parked names its own undo, not that of another part") {
  EngineWorld engine;
  script_parked_parts(engine);
  engine.open();
  const std::uint64_t top = engine.submit("top").value;
  engine.run();

  CHECK(ids(engine.executor().inspect().list({.parked = true})) ==
        Values{top + 1, top + 2, top + 3, top + 4});
  for (const std::uint64_t part : {top + 1, top + 2}) {
    CHECK_THAT(engine.describe({part}).error.to_string(),
               ContainsSubstring("procedure " + std::to_string(part + 2) + " is parked"));
  }
}

TEST_CASE("parked parts name their own undo also while the tree around them waits to be undone") {
  EngineWorld engine;
  std::vector<std::string> errors;
  script_parked_parts(engine, "works");
  engine.world.scripts["works"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
    const std::uint64_t top = run.ctx.id().value - 1;
    const auto* value = run.ctx.offload([&, top] {
      engine.run();
      engine.executor().async().abort({top}, {.reason = "too late"}, [](const Status&) {});
      engine.run();
      for (const std::uint64_t part : {top + 2, top + 3}) {
        errors.push_back(engine.describe({part}).error.to_string());
        errors.push_back(to_string(*engine.executor().inspect().explain({part})));
      }
    });
    return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
  }};
  engine.open();
  (void)engine.submit("top");
  engine.run();

  REQUIRE(errors.size() == 4);
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    CAPTURE(errors[2 * i], errors[2 * i + 1]);
    const std::string undo = "procedure " + std::to_string(5 + i) + " is parked";
    CHECK_THAT(errors[2 * i], ContainsSubstring(undo));
    CHECK_THAT(errors[2 * i + 1], !ContainsSubstring("not found among"));
  }
}

TEST_CASE("in a tree that is parked beyond a point of no return each member says so") {
  EngineWorld engine;
  engine.world.scripts["parent"] = {.steps = 5, .run = [](JobRun& run) -> std::optional<Outcome> {
                                      if (run.step == 4) {
                                        for (const char* child : {"asks", "fails"})
                                          run.spawn(child);
                                      }
                                      return std::nullopt;
                                    }};
  engine.world.scripts["asks"] = asks_in(1);
  engine.world.scripts["fails"] = {.run = [](JobRun&) { return std::optional(Say::fail("no")); }};
  engine.open();
  const ProcedureId parent = engine.submit<CommittingJob>("parent");
  engine.run();

  const std::uint64_t first = parent.value;
  CHECK(ids(engine.executor().inspect().list({.parked = true})) ==
        Values{first, first + 1, first + 2});
  CHECK(engine.describe(parent).error.message() == "no");
  CHECK(engine.describe({first + 2}).error.message() == "no");
  CHECK(engine.describe({first + 1}).error.message() ==
        "the tree of procedure " + std::to_string(first) +
            " failed after a point of no return: no");
}

TEST_CASE("fields are shown as the last record has them, and a type that throws harms no other") {
  EngineWorld engine;
  bool throws = false;
  engine.world.scripts["asks"] = asks_in(2);
  auto options = engine.options();
  options.registry.add<Touchy>(throws);
  engine.open(std::move(options));
  const ProcedureId job = engine.submit("asks");
  const auto touchy = engine.executor().submit(Touchy(&throws, "shy"));
  REQUIRE(touchy.ok());
  CHECK(engine.describe(job).fields.find("\"asks\"") != std::string::npos);
  CHECK(engine.describe(job).fields.find("asked") == std::string::npos);
  engine.run();
  CHECK(engine.describe(job).fields.find("asked") != std::string::npos);
  CHECK(engine.describe(touchy->id).fields.find("shy") != std::string::npos);

  throws = true;
  const ProcedurePage page = engine.executor().inspect().list({.with_fields = true});
  REQUIRE(page.procedures.size() == 2);
  CHECK(page.procedures[0].fields.find("asked") != std::string::npos);
  CHECK(page.procedures[1].fields.empty());
  CHECK_THAT(page.procedures[1].fields_error.to_string(), ContainsSubstring("not for your eyes"));
  CHECK(engine.executor().inspect().list({}).procedures[0].fields.empty());
  throws = false;
}

TEST_CASE("a submission is listed when it is durable, not before") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  engine.open();
  engine.faults().hold_commit(engine.faults().commits() + 1);
  engine.executor().async().submit(Job(engine.world, "a"), {}, [](const Result<Submitted>&) {});
  engine.run();
  CHECK(engine.executor().inspect().list().empty());
  CHECK(engine.executor().inspect().describe({1}).status().code() == StatusCode::kNotFound);
  engine.faults().release();
  engine.executor().run_until_idle(0);
  engine.run();
  CHECK(engine.result({1}).status.ok());
}

TEST_CASE("a history exists as long as the record does, also after the end") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 3};
  engine.open();
  const ProcedureId id = engine.submit("a");
  CHECK(engine.executor().inspect().history(id)->empty());
  engine.run();
  const auto history = engine.executor().inspect().history(id);
  REQUIRE(history.ok());
  REQUIRE(history->size() == 3);
  CHECK((*history)[0].step == 1);
  CHECK((*history)[2].outcome == Outcome::Kind::kDone);
  CHECK(engine.executor().inspect().history({99}).status().code() == StatusCode::kNotFound);

  engine.executor().async().acknowledge(id, [](const Status&) {});
  engine.run();
  CHECK(engine.executor().inspect().history(id).status().code() == StatusCode::kExpired);
}

TEST_CASE("listings made while procedures run on other threads are sound") {
  EngineWorld engine;
  engine.world.scripts["parent"] = {.children = {"child", "child"}, .locks = kOrders};
  engine.world.scripts["child"] = {.steps = 2};
  ExecutorOptions options = engine.options();
  options.workers = 2;
  options.store = memory(engine.disk, {.mode = MemoryStoreOptions::Mode::kThread});
  options.clock = nullptr;
  options.log = {};
  const auto executor = *ProcedureExecutor::open(std::move(options));
  executor->start();
  std::atomic<bool> stop = false;
  bool sorted = true;
  std::thread lister([&] {
    while (!stop) {
      std::uint64_t last = 0;
      ProcedureId next;
      do {
        const ProcedurePage page = executor->inspect().list({.with_fields = true}, next, 5);
        for (const ProcedureInfo& info : page.procedures) {
          sorted = sorted && info.id.value > last && info.fields_error.ok();
          last = info.id.value;
          (void)executor->inspect().history(info.id);
        }
        next = page.next;
      } while (next);
      (void)executor->inspect().running();
    }
  });
  std::vector<ProcedureId> submitted;
  for (int i = 0; i < 60; ++i) {
    submitted.push_back(executor->submit(Job(engine.world, "parent"))->id);
  }
  for (const ProcedureId id : submitted) CHECK(executor->wait(id).ok());
  stop = true;
  lister.join();
  CHECK(sorted);
}

TEST_CASE("a listing shows a procedure while it runs, and its result afterwards") {
  EngineWorld engine;  // behaviour.md, row 126
  engine.world.scripts["a"] = {.steps = 2};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.executor().run_until_idle(1);
  REQUIRE(engine.executor().inspect().list().size() == 1);
  CHECK(engine.executor().inspect().list()[0].id == id);
  CHECK(engine.executor().inspect().list()[0].step_name == "TWO");
  engine.run();
  CHECK(engine.executor().inspect().list().empty());
  CHECK(engine.result(id).state == ProcedureState::kSuccess);
}

}  // namespace pv2::testing::listing_test
