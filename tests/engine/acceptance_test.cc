// SPDX-License-Identifier: Apache-2.0
//
// Rows of the acceptance list that no other file asserts as a whole, each told as there: how often
// everything runs when the process dies before every write, how many restarts that takes, and what
// is left. Counts are those of our records, not of the original's writes. tests/behaviour.md says
// which row is where.

#include <thread>

#include "record_codec.h"
#include "support/engine_world.h"

namespace pv2::testing {
namespace {

using namespace std::chrono_literals;

std::optional<Outcome> usual() { return std::nullopt; }

std::optional<Outcome> fails(JobRun& /*run*/) { return Say::fail("as it was told"); }

std::size_t count_beginning(const EngineWorld& engine, std::string_view beginning) {
  const Entries journal = engine.journal();
  return static_cast<std::size_t>(
      std::count_if(journal.begin(), journal.end(),
                    [&](const std::string& entry) { return entry.starts_with(beginning); }));
}

// Lets the process die before every write: a life makes the record that the last one lost, runs
// what follows, and dies before that is written. So everything runs exactly twice. Returns how many
// restarts it took until everything had ended.
std::size_t run_dying_before_every_write(EngineWorld& engine) {
  std::size_t restarts = 0;
  engine.faults().crash_before(engine.faults().commits() + 1, FaultStore::AfterCrash::kFail);
  engine.run();
  while (true) {
    engine.open();
    if (engine.executor().inspect().live_procedures() == 0) return restarts;
    REQUIRE(++restarts < 100);
    engine.faults().crash_before(engine.faults().commits() + 2, FaultStore::AfterCrash::kFail);
    engine.run();
    if (engine.executor().health().ok()) engine.run_to_the_end();  // nothing was left to lose
  }
}

// The undo list of the last record of `id`.
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

// Counts how often its constructor throws: as after a deployment that cannot make it.
struct Fragile final : Procedure {
  static constexpr std::string_view kType = "test.Fragile";
  explicit Fragile(const bool& broken) {
    if (broken) throw std::runtime_error("its dependency is missing");
  }
  void fields(auto& /*f*/) {}
  Outcome execute(StepContext&) override { return done("made after all"); }
};

}  // namespace

TEST_CASE("a child that cannot be recorded fails its parent, and what was done is undone") {
  EngineWorld engine;  // row 1
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

TEST_CASE("three nested procedures run once each, the outer ones before the inner ones") {
  EngineWorld engine;  // row 2
  engine.world.scripts["a"] = {.steps = 2, .children = {"b"}};
  engine.world.scripts["b"] = {.steps = 2, .children = {"c"}};
  engine.world.scripts["c"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();

  CHECK(engine.journal() == Entries{"do a.1", "do a.2", "do b.1", "do b.2", "do c.1"});
  CHECK(engine.result(id).result == "a done");
}

TEST_CASE("a wait that may not be exceeded fails no earlier than its deadline, and is undone") {
  EngineWorld engine;  // rows 5, 6
  const bool final_child = GENERATE(true, false);
  engine.world.scripts["child"] = {.steps = 1};
  engine.world.scripts["a"] = {
      .steps = 2, .run = [final_child](JobRun& run) -> std::optional<Outcome> {
        if (run.step == 1) {
          final_child ? run.ctx.spawn(FinalJob(run.world, "child")) : run.spawn("child");
          return usual();
        }
        if (!run.ctx.timed_out()) return Say::wait_for(5s);
        return Say::fail(Status(StatusCode::kDeadlineExceeded, "nobody came"));
      }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.advance(5s - 1us);
  CHECK(engine.executor().inspect().live_procedures() == 2);
  engine.advance(1us);

  CHECK(engine.result(id).status == Status(StatusCode::kDeadlineExceeded, "nobody came"));
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.world.journal.count("do child.1") == 1);
  CHECK(engine.world.journal.count("undo child.1") == (final_child ? 0 : 1));
  CHECK(count_beginning(engine, "undo a.") == 2);
}

TEST_CASE("three levels killed at every write advance by one record with each restart") {
  EngineWorld engine;  // row 9
  engine.world.scripts["a"] = {.steps = 2, .children = {"b"}};
  engine.world.scripts["b"] = {.steps = 2, .children = {"c"}};
  engine.world.scripts["c"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("a");
  const std::size_t restarts = run_dying_before_every_write(engine);

  CHECK(engine.result(id).status.ok());
  CHECK(count_beginning(engine, "do ") == 2 * 5);
  // a.1, a.2, b.1, b.2, c.1 and the end of a; that of b needs no step, open() writes it.
  CHECK(restarts == 6);
}

TEST_CASE("what the steps add up is the same with a crash in each of them") {
  EngineWorld engine;  // row 12
  const bool crash = GENERATE(false, true);
  engine.world.scripts["a"] = {.steps = 5, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 run.note += std::to_string(run.step * 2);
                                 return run.step == 5 ? std::optional(Say::done(run.note))
                                                      : usual();
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  if (crash) {
    CHECK(run_dying_before_every_write(engine) == 5);
  } else {
    engine.run();
  }
  CHECK(engine.result(id).result == "246810");
}

TEST_CASE(
    "a child of the last step runs before its parent's end, twice with a crash at each write") {
  EngineWorld engine;  // rows 15, 16
  const bool crash = GENERATE(false, true);
  engine.world.scripts["a"] = {.steps = 2, .children = {"b"}};
  engine.world.scripts["b"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("a");
  crash ? void(run_dying_before_every_write(engine)) : engine.run();

  CHECK(engine.result(id).status.ok());
  CHECK(count_beginning(engine, "do ") == (crash ? 6 : 3));
  CHECK(count_beginning(engine, "undo ") == 0);
}

TEST_CASE("a child of the last step that fails has all undone, twice with a crash at each write") {
  EngineWorld engine;  // rows 17, 18, 13
  const bool crash = GENERATE(false, true);
  engine.world.scripts["a"] = {.steps = 2, .children = {"b"}};
  engine.world.scripts["b"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 run.effect();
                                 return Say::fail("the child's own words");
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  crash ? void(run_dying_before_every_write(engine)) : engine.run();

  CHECK(engine.result(id).status.message() == "the child's own words");
  CHECK(count_beginning(engine, "do ") == (crash ? 6 : 3));
  CHECK(count_beginning(engine, "undo ") == (crash ? 6 : 3));
  engine.crash_and_open();
  CHECK(engine.result(id).status.message() == "the child's own words");
}

TEST_CASE("nothing is left in the undo list after a rollback, also of one that failed at times") {
  EngineWorld engine;  // rows 19, 20
  const bool throws = GENERATE(false, true);
  engine.world.scripts["a"] = {.children = {"b"}};
  engine.world.scripts["a"].undo = [throws](JobRun& run) -> std::optional<Outcome> {
    if (throws && run.ctx.attempt() == 1) throw std::runtime_error("not now");
    return usual();
  };
  engine.world.scripts["b"] = {.steps = 1, .run = fails};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.executor().run_until_idle(2);
  CHECK(undo_entries(engine, id) == 2);
  engine.run_to_the_end();

  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(undo_entries(engine, id) == 0);
}

TEST_CASE("machines that give way before each step take turns, forward and back") {
  EngineWorld engine;  // row 21
  for (const char* name : {"a", "b", "c"}) {
    engine.world.scripts[name] = {.run = [](JobRun& run) -> std::optional<Outcome> {
      if (run.note != run.label()) {
        run.note = run.label();
        return Say::again();
      }
      return run.step == 3 ? std::optional(Say::fail("back")) : usual();
    }};
  }
  engine.open();
  const std::size_t before = engine.faults().commits();
  for (const char* name : {"a", "b", "c"}) engine.submit(name);
  while (engine.executor().inspect().live_procedures() != 0) engine.executor().run_until_idle(1);

  Entries expected;
  for (const char* step : {".1", ".2"}) {
    for (const char* name : {"a", "b", "c"}) expected.push_back("do " + std::string(name) + step);
  }
  const Entries journal = engine.journal();
  CHECK(Entries(journal.begin(), journal.begin() + 6) == expected);
  for (const char* name : {"a", "b", "c"}) {
    Entries undone;
    for (const std::string& entry : journal) {
      if (entry.starts_with("undo " + std::string(name))) undone.push_back(entry.substr(6));
    }
    CHECK(undone == Entries{".3", ".2", ".1"});
  }
  // Of each: the insert, three times giving way, two steps, the failure, three undone.
  CHECK(engine.faults().commits() - before == 3 * (1 + 3 + 2 + 1 + 3));
}

TEST_CASE("a step that gives way five times makes five records more and is done once") {
  EngineWorld engine;  // row 23
  engine.world.scripts["a"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                 run.note += "x";
                                 return run.note.size() <= 5 ? std::optional(Say::again())
                                                             : usual();
                               }};
  engine.open();
  const std::size_t before = engine.faults().commits();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK(engine.journal() == Entries{"do a.1"});
  CHECK(engine.faults().commits() - before == 1 + 5 + 1);
  CHECK(engine.result(id).status.ok());
}

TEST_CASE(
    "a holder that fails while it waits is undone under its lock, and then the next gets it") {
  EngineWorld engine;  // row 27
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

TEST_CASE("the result of a tree survives restarts, whether it succeeded or failed") {
  EngineWorld engine;  // rows 35, 38
  const bool failing = GENERATE(false, true);
  engine.world.scripts["a"] = {.children = {"b", "c"}};
  engine.world.scripts["b"] = {.steps = 1};
  engine.world.scripts["c"] = {.steps = 2};
  if (failing) engine.world.scripts["c"].run = fails;
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  const ProcedureResult before = engine.result(id);
  CHECK(before.status.ok() == !failing);
  const Entries journal = engine.journal();
  for (int life = 0; life < 2; ++life) {
    engine.crash_and_open();
    engine.run();
    CHECK(engine.result(id).status == before.status);
    CHECK(engine.result(id).result == before.result);
    CHECK(engine.result(id).finished == before.finished);
    CHECK(engine.executor().inspect().list().empty());
  }
  CHECK(engine.journal() == journal);
}

TEST_CASE(
    "a tree that is killed at every write needs one restart per record that follows another") {
  EngineWorld engine;  // rows 36, 39
  const bool failing = GENERATE(false, true);
  engine.world.scripts["a"] = {.steps = 1, .run = [](JobRun& run) {
                                 run.spawn("b");
                                 return usual();
                               }};
  engine.world.scripts["b"] = {.steps = 1};
  if (failing) engine.world.scripts["b"].run = fails;
  engine.open();
  const ProcedureId id = engine.submit("a");
  const std::size_t restarts = run_dying_before_every_write(engine);

  CHECK(engine.result(id).status.ok() == !failing);
  // a.1 and b.1; then the end of a, or the undoing of b.1 and of a.1, which is the end.
  CHECK(restarts == (failing ? 4 : 3));
}

TEST_CASE("a process that dies between the last child's record and its parent's goes on") {
  EngineWorld engine;  // row 37
  engine.world.scripts["a"] = {.children = {"b", "b"}};
  engine.world.scripts["b"] = {.steps = 1};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.executor().run_until_idle(2);
  engine.faults().crash_after(engine.faults().commits() + 2, FaultStore::AfterCrash::kFail);
  engine.run();
  REQUIRE(engine.world.journal.count("do b.1") == 2);
  REQUIRE(engine.world.journal.count("do a.3") == 0);
  engine.open();
  CHECK(engine.describe(id).state == ProcedureState::kRunnable);
  engine.run();
  CHECK(engine.result(id).status.ok());
  CHECK(engine.world.journal.count("do b.1") == 2);
}

TEST_CASE("whichever of two siblings is recorded first, a crash between them tears nothing") {
  EngineWorld engine;  // row 48
  const bool failing = GENERATE(false, true);
  engine.world.scripts["p"] = {.children = {"x", "y"}};
  engine.world.scripts["x"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 1) return usual();
    const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
    return value == nullptr ? std::optional(Say::wait()) : usual();
  }};
  engine.world.scripts["y"] = {.steps = 2};
  if (failing)
    engine.world.scripts["y"].run = [](JobRun& run) {
      return run.step == 2 ? std::optional(Say::fail("no")) : usual();
    };
  engine.open();
  const ProcedureId id = engine.submit("p");
  engine.executor().run_until_idle(4);  // the younger is recorded, the older still asks
  engine.crash_and_open();
  engine.run();
  while (engine.world.answer_one("go on")) engine.run();
  CHECK(engine.result(id).status.ok() == !failing);
  for (const std::string& line : engine.log_lines)
    CHECK_THAT(line, !ContainsSubstring("quarantined"));
}

TEST_CASE("a batch of submissions all end, and acknowledged they leave nothing but the watermark") {
  World world;  // rows 62, 88
  world.scripts["plain"] = {.steps = 2};
  world.scripts["tree"] = {.children = {"plain", "plain"}};
  const auto disk = std::make_shared<MemoryDisk>();
  ExecutorOptions options;
  options.store = memory(disk, {.mode = MemoryStoreOptions::Mode::kThread});
  add_job_types(options.registry, world);
  options.log = {};
  auto opened = ProcedureExecutor::open(std::move(options));
  REQUIRE(opened.ok());
  ProcedureExecutor& executor = **opened;
  executor.start();
  std::atomic<int> acknowledged = 0;
  std::vector<std::thread> clients;
  for (std::uint64_t client = 1; client <= 4; ++client) {
    clients.emplace_back([&, client] {
      std::vector<ProcedureId> ids;
      for (std::uint64_t key = 1; key <= 250; ++key) {
        const auto submitted =
            executor.submit(Job(world, key % 5 == 0 ? "tree" : "plain"), {.nonce = {client, key}});
        if (submitted.ok()) ids.push_back(submitted->id);
      }
      for (const ProcedureId id : ids) {
        if (executor.wait(id).ok() && executor.acknowledge(id).ok()) ++acknowledged;
      }
    });
  }
  for (std::thread& client : clients) client.join();

  CHECK(acknowledged == 1000);
  CHECK(executor.inspect().live_procedures() == 0);
  CHECK(disk->rows() - disk->rows(Space::kEngine) == 0);
}

TEST_CASE("a procedure that cannot be made after a restart waits for a build that can make it") {
  EngineWorld engine;  // row 121
  bool broken = false;
  const auto options = [&] {
    ExecutorOptions made = engine.options();
    made.registry.add<Fragile>(broken);
    return made;
  };
  engine.world.scripts["other"] = {.steps = 1};
  engine.open(options());
  const auto submitted = engine.executor().submit(Fragile(broken), {.nonce = {1, 1}});
  REQUIRE(submitted.ok());
  for (int life = 0; life < 2; ++life) {
    engine.close();
    ExecutorOptions next = options();  // registration makes one of each type
    broken = true;
    engine.open(std::move(next));
    const ProcedureId other = engine.submit("other");
    engine.run();
    CHECK(engine.result(other).status.ok());
    CHECK_FALSE(engine.describe(submitted->id).quarantined);
    CHECK_THAT(engine.describe(submitted->id).error.to_string(),
               ContainsSubstring("its dependency is missing"));
    broken = false;
  }
  engine.open(options());
  engine.run_to_the_end();
  CHECK(engine.result(submitted->id).result == "made after all");
}

TEST_CASE("a listing shows a procedure while it runs, and its result afterwards") {
  EngineWorld engine;  // row 126
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

}  // namespace pv2::testing
