// SPDX-License-Identifier: Apache-2.0
//
// What callers and steps hand in is bounded. Each string, list and count that is too large is
// refused with an error that names it, and the engine goes on unaffected.

#include <pv2/engine/executor_options.h>
#include <pv2/engine/limits.h>
#include <pv2/store/noop_procedure_store.h>

#include "model/check_limits.h"
#include "support/engine_world.h"

namespace pv2::testing::handed_in_test {
namespace {

using namespace std::chrono_literals;

const std::string kHuge(std::size_t{17} << 20, 'h');

// The engine still works, and a restart finds the same.
void must_be_well(EngineWorld& engine) {
  REQUIRE(engine.executor().health().to_string() == "OK");
  engine.world.scripts["after"] = {};
  const ProcedureId id = engine.submit("after");
  engine.run();
  CHECK(engine.result(id).status.ok());
  engine.open();
  CHECK(engine.result(id).status.ok());
  CHECK(engine.store_failures.empty());
}

void must_say(const Status& status, StatusCode code, const std::string& what) {
  CHECK(status.code() == code);
  CHECK_THAT(std::string(status.message()), ContainsSubstring(what));
  CHECK(status.message().size() < 500);
}

// The error of a job whose second step runs `act` and then goes on.
Status fails_with(EngineWorld& engine, std::function<void(JobRun&)> act) {
  engine.world.scripts["a"] = {
      .run = [act = std::move(act)](JobRun& run) -> std::optional<Outcome> {
        if (run.step == 2) act(run);
        return std::nullopt;
      }};
  const ProcedureId id = engine.submit("a");
  engine.run_to_the_end();
  const ProcedureResult result = engine.result(id);
  CHECK(result.state == ProcedureState::kRolledBack);
  return result.status;
}

}  // namespace

TEST_CASE("a limit on a key whose name is too long is refused, and the engine goes on") {
  EngineWorld engine;
  engine.open();
  const std::string longest(limits::kKeyNameBytes, 'k');

  must_say(engine.executor().operate().set_limit({ResourceClass::kHostFirst, kHuge}, 1),
           StatusCode::kInvalidArgument, "has 17825792 bytes; at most 4096 are allowed");
  must_say(engine.executor().operate().set_limit({ResourceClass::kHostFirst, longest + "k"},
                                                 std::nullopt),
           StatusCode::kInvalidArgument, "has 4097 bytes; at most 4096");
  must_say(engine.executor().operate().set_limit({static_cast<ResourceClass>(17), "x"}, 1),
           StatusCode::kInvalidArgument, "has class 17, which does not exist");
  must_say(engine.executor().operate().set_type_limit(kHuge, 1), StatusCode::kInvalidArgument,
           "is not registered");
  CHECK(engine.executor().operate().set_limit({ResourceClass::kHostFirst, longest}, 1).ok());
  must_be_well(engine);
}

TEST_CASE("the number of limited keys is bounded, and each limit may be changed or ended") {
  EngineWorld engine;
  engine.open();
  const auto key = [](std::size_t i) {
    return ResourceKey{ResourceClass::kHostFirst, std::to_string(i)};
  };
  for (std::size_t i = 0; i < limits::kLimitedKeys; ++i) {
    REQUIRE(engine.executor().operate().set_limit(key(i), 1).ok());
  }

  must_say(engine.executor().operate().set_limit(key(limits::kLimitedKeys), 1),
           StatusCode::kResourceExhausted, "1024 keys and types have a limit");
  CHECK(engine.executor().operate().set_limit(key(0), 2).ok());
  CHECK(engine.executor().operate().set_limit(key(1), std::nullopt).ok());
  CHECK(engine.executor().operate().set_limit(key(limits::kLimitedKeys), 1).ok());
  must_be_well(engine);
}

TEST_CASE("a submission with an owner, fields or lock names that are too long is refused") {
  EngineWorld engine;
  engine.world.scripts["a"] = {};
  engine.world.scripts["locks"] = {
      .locks =
          LockSet().key({ResourceClass::kHostFirst, std::string(4097, 'k')}, LockMode::kShared)};
  engine.world.scripts["class"] = {
      .locks = LockSet().key({static_cast<ResourceClass>(17), "k"}, LockMode::kShared)};
  engine.world.scripts[kHuge] = {};
  engine.open();
  const auto refusal = [&](const std::string& name, std::string owner = {}) {
    return engine.executor()
        .submit(Job(engine.world, name), {.nonce = {1, 2}, .owner = std::move(owner)})
        .status();
  };

  must_say(refusal("a", std::string(1025, 'o')), StatusCode::kInvalidArgument,
           "SubmitOptions::owner has 1025 bytes; at most 1024");
  must_say(refusal("a", kHuge), StatusCode::kInvalidArgument, "SubmitOptions::owner has 17825792");
  must_say(refusal("locks"), StatusCode::kInvalidArgument, "has 4097 bytes; at most 4096");
  must_say(refusal("class"), StatusCode::kInvalidArgument, "has class 17, which does not exist");
  must_say(refusal(kHuge), StatusCode::kInvalidArgument, "bytes of fields, owner and locks");
  CHECK(engine.executor().submit(Job(engine.world, "a"), {.nonce = {1, 2}}).ok());
  engine.run_to_the_end();
  must_be_well(engine);
}

TEST_CASE("signals, aborts and orders with strings of any length are refused or cut") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun&) { return Say::wait_for(1h); }};
  engine.world.scripts["parks"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
                                     if (run.step == 2) return Say::fail(kHuge);
                                     return std::nullopt;
                                   },
                                   .undo = [](JobRun&) { return Say::fail(kHuge); }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  const ProcedureId parked = engine.submit("parks");
  engine.run();

  must_say(engine.executor().signal(id, kHuge), StatusCode::kInvalidArgument,
           "the name of a signal has 1 to 256 bytes, not 17825792");
  must_say(engine.executor().signal(id, "s", kHuge), StatusCode::kInvalidArgument,
           "max_signal_bytes");
  REQUIRE(engine.executor().abort(id, {.reason = kHuge, .who = kHuge}).ok());
  engine.run();
  CHECK(engine.result(id).status.message().size() <= limits::kErrorBytes);
  must_say(engine.executor().operate().skip_step(
               parked, {.who = kHuge, .why = kHuge, .next_step = 1u << 31}),
           StatusCode::kInvalidArgument, "next_step");
  must_say(engine.executor().operate().skip_step(parked, {.who = kHuge, .why = kHuge}),
           StatusCode::kOk, "");
  engine.run();
  REQUIRE(engine.executor().operate().bypass(parked, {.who = kHuge, .why = kHuge}).ok());
  engine.run();
  CHECK(engine.result(parked).bypassed);
  const auto entries = engine.executor().operate().audit(parked);
  REQUIRE(entries.ok());
  for (const AuditEntry& entry : entries.value()) {
    CHECK(entry.who.size() == limits::kWhoBytes);
    CHECK(entry.why.size() == limits::kWhyBytes);
  }
  must_be_well(engine);
}

TEST_CASE(
    "a step that hands in too much fails with an error that names it, and nothing is written") {
  EngineWorld engine;
  engine.open();

  must_say(fails_with(engine, [](JobRun& run) { run.ctx.put_row(std::string(4097, 'k'), "v"); }),
           StatusCode::kInvalidArgument, "the key of the row");
  must_say(fails_with(engine, [](JobRun& run) { run.ctx.erase_row(kHuge); }),
           StatusCode::kInvalidArgument, "has 17825792 bytes; at most 4096");
  must_say(fails_with(engine, [](JobRun& run) { run.ctx.put_row("k", kHuge); }),
           StatusCode::kInvalidArgument, "step TWO of procedure");
  must_say(fails_with(engine,
                      [](JobRun& run) {
                        for (int i = 0; i < 70'000; ++i) run.ctx.put_row("k", "v");
                      }),
           StatusCode::kInvalidArgument, "writes 65537 rows");
  must_say(fails_with(engine, [](JobRun& run) { run.note = kHuge; }), StatusCode::kInvalidArgument,
           "fields() of a test.Job at step TWO has 178257");
  must_say(fails_with(engine,
                      [](JobRun& run) { run.ctx.submit(Job(run.world, "a"), {.owner = kHuge}); }),
           StatusCode::kInvalidArgument, "SubmitOptions::owner has 17825792 bytes");
  must_say(fails_with(engine,
                      [](JobRun& run) {
                        for (int i = 0; i < 40'000; ++i) run.ctx.submit(Job(run.world, "a"));
                      }),
           StatusCode::kInternal, "a step may submit at most 21845 procedures");
  must_say(fails_with(engine,
                      [](JobRun& run) {
                        for (int i = 0; i < 40'000; ++i) run.ctx.spawn(Job(run.world, "a"));
                      }),
           StatusCode::kInternal, "a step may spawn at most 32767 children");
  for (const SpawnOptions& options : {SpawnOptions{.on_failure = static_cast<OnFailure>(2)},
                                      SpawnOptions{.undo_order = static_cast<UndoOrder>(2)}}) {
    must_say(fails_with(engine, [&](JobRun& run) { run.ctx.spawn(Job(run.world, "a"), options); }),
             StatusCode::kInternal, "SpawnOptions has a value that its kind does not have");
  }
  must_say(fails_with(engine,
                      [](JobRun& run) {
                        for (int i = 0; i < 20'000; ++i) (void)run.ctx.signal("no such signal");
                      }),
           StatusCode::kInternal, "a step may look for at most 16384 signals");
  must_be_well(engine);
}

namespace {

// Does `once` until it throws, which the step keeps to itself.
std::function<void(JobRun&)> until_it_throws(std::function<void(JobRun&)> once) {
  return [once = std::move(once)](JobRun& run) {
    try {
      for (int i = 0; i < 40'000; ++i) once(run);
    } catch (...) {  // NOLINT(bugprone-empty-catch)
    }
  };
}

}  // namespace

TEST_CASE("a step that keeps to itself what a call beyond a bound throws fails all the same") {
  EngineWorld engine;
  engine.open();
  Event event;
  event.set();
  const auto fails_saying = [&](const std::string& what, std::function<void(JobRun&)> once) {
    must_say(fails_with(engine, until_it_throws(std::move(once))), StatusCode::kInternal, what);
  };

  fails_saying("a step may submit at most 21845 procedures",
               [](JobRun& run) { run.ctx.submit(Job(run.world, "a")); });
  fails_saying("step TWO of test.Job: a step may spawn at most 32767 children",
               [](JobRun& run) { run.ctx.spawn(Job(run.world, "a")); });
  fails_saying("SpawnOptions has a value that its kind does not have", [](JobRun& run) {
    run.ctx.spawn(Job(run.world, "a"), {.on_failure = static_cast<OnFailure>(2)});
  });
  fails_saying("a step may await at most 16384 things",
               [&](JobRun& run) { (void)run.ctx.await(event); });
  fails_saying("a step may await at most 16384 things", [](JobRun& run) {
    (void)run.ctx.await<int>([](const auto& answer) { answer(1); });
  });
  fails_saying("1024 pieces", [](JobRun& run) { (void)run.ctx.offload([] {}); });
  fails_saying("a step may look for at most 16384 signals",
               [](JobRun& run) { (void)run.ctx.signal("no such signal"); });
  must_be_well(engine);
}

TEST_CASE("a step that runs again, awaits another thing and keeps the error to itself fails") {
  EngineWorld engine;
  Event first, second;
  engine.world.scripts["a"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                 if (!first.is_set()) {
                                   (void)run.ctx.await(first);
                                   return Say::wait();
                                 }
                                 try {
                                   (void)run.ctx.await(second);
                                 } catch (const std::logic_error&) {  // NOLINT
                                 }
                                 return std::nullopt;
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  first.set();
  engine.run();
  must_say(engine.result(id).status, StatusCode::kInternal, "the same things in the same order");
}

TEST_CASE("an undo that keeps to itself what a call beyond a bound throws is tried again") {
  EngineWorld engine;
  int undos = 0;
  engine.world.scripts["a"] = {
      .run = [](JobRun& run) -> std::optional<Outcome> {
        return run.step == 2 ? std::optional(Say::fail("no")) : usual();
      },
      .undo = [&](JobRun& run) -> std::optional<Outcome> {
        if (run.step != 1) return usual();
        if (++undos == 1) {
          until_it_throws([](JobRun& undo) { (void)undo.ctx.offload([] {}); })(run);
        }
        return Say::undone();
      }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  CHECK_FALSE(engine.describe(id).parked);
  engine.run_to_the_end();
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(undos == 2);
}

TEST_CASE("a step may spawn as many children as its bound says") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 2) return std::nullopt;
    for (std::size_t i = 0; i < limits::kSpawnsPerStep; ++i) run.ctx.spawn(Job(run.world, "child"));
    return std::nullopt;
  }};
  engine.world.scripts["child"] = {.run = [](JobRun&) { return Say::done(""); }};
  ExecutorOptions options = engine.options();
  options.max_live_procedures = 2 * limits::kSpawnsPerStep;
  engine.open(std::move(options));
  const ProcedureId id = engine.submit("a");
  engine.run_to_the_end();
  CHECK(engine.result(id).status.to_string() == "OK");
  CHECK(engine.store_failures.empty());
}

// A program that was tried out without a disk does not fail on one.
TEST_CASE("what is too large for a store on disk is too large for a store without records") {
  EngineWorld engine;
  ExecutorOptions options = engine.options();
  options.store = noop();
  engine.open(std::move(options));

  engine.world.scripts["both"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    run.note.assign(9 << 20, 'n');
    return Say::done(std::string(9 << 20, 'r'));
  }};
  const ProcedureId both = engine.submit("both");
  engine.run();
  must_say(engine.result(both).status, StatusCode::kInvalidArgument, "18874");
  must_say(fails_with(engine,
                      [](JobRun& run) {
                        for (int i = 0; i < 65'536; ++i) run.ctx.put_row(std::to_string(i), "v");
                      }),
           StatusCode::kInvalidArgument, "rows");
  engine.world.scripts["small"] = {};
  must_say(fails_with(engine,
                      [](JobRun& run) {
                        run.ctx.put_row("k", "v");
                        for (std::uint64_t i = 1; i <= 21'845; ++i) {
                          run.ctx.submit(Job(run.world, "small"), {.nonce = {5, i}});
                        }
                      }),
           StatusCode::kInvalidArgument, "writes 65537 rows");
  CHECK(engine.store_failures.empty());
}

TEST_CASE("the end of a root whose record is large is held back, on a store without records too") {
  EngineWorld engine;
  ExecutorOptions options = engine.options();
  options.store = noop();
  engine.world.scripts["held"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 1) return std::nullopt;
    run.ctx.offload([] {});
    for (int i = 0; i < 65'530; ++i) run.ctx.put_row(std::to_string(i), "v");
    return Say::done(std::string(8 << 20, 'r'));
  }};
  engine.open(std::move(options));

  const ProcedureId held = engine.submit("held");
  engine.run();

  CHECK(engine.result(held).status.to_string() == "OK");
  CHECK(engine.store_failures.empty());
}

TEST_CASE("results, children and undos that are too large fail or park, and the engine goes on") {
  EngineWorld engine;
  engine.world.scripts["result"] = {.run = [](JobRun&) { return Say::done(kHuge); }};
  engine.world.scripts[kHuge] = {};
  engine.world.scripts["parent"] = {.children = {kHuge}};
  engine.world.scripts["undo"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
                                    if (run.step == 2) return Say::fail("no");
                                    return std::nullopt;
                                  },
                                  .undo = [](JobRun& run) -> std::optional<Outcome> {
                                    run.note = kHuge;
                                    return std::nullopt;
                                  }};
  engine.open();
  const ProcedureId result = engine.submit("result");
  const ProcedureId parent = engine.submit("parent");
  const ProcedureId undo = engine.submit("undo");
  engine.run();

  must_say(engine.result(result).status, StatusCode::kInvalidArgument, "the result of a test.Job");
  must_say(engine.result(parent).status, StatusCode::kInvalidArgument, "what is spawned by step");
  CHECK(engine.describe(undo).parked);
  must_say(engine.describe(undo).error, StatusCode::kInvalidArgument, "fields() of a test.Job");
  CHECK(engine.executor().operate().bypass(undo, {.who = kHuge, .why = kHuge}).ok());
  engine.run();
  must_be_well(engine);
}

// The largest image that a record takes, then everything that later records may add: an error, the
// error of a parked undo, and orders with the longest note.
TEST_CASE("an order about a procedure whose record just fits is written") {
  const auto run_with = [](std::size_t bytes) {
    EngineWorld engine;
    engine.store_options.limits = {.batch_operations = 64, .batch_bytes = 64 << 10};
    engine.world.scripts["a"] = {.run = [bytes](JobRun& run) -> std::optional<Outcome> {
                                   if (run.step == 1) run.note.assign(bytes, 'n');
                                   if (run.step == 2) return Say::fail(std::string(4000, 'f'));
                                   return std::nullopt;
                                 },
                                 .undo = [](JobRun&) { return Say::fail(std::string(4000, 'p')); }};
    engine.open();
    const ProcedureId id = engine.submit("a");
    engine.run();
    const bool parked = engine.describe(id).parked;
    const RepairNote note{.who = std::string(256, 'w'), .why = std::string(1024, 'y')};
    for (int i = 0; parked && i < 9; ++i) {
      REQUIRE(engine.executor().operate().retry_now(id, note).ok());
      engine.run();
      REQUIRE(engine.describe(id).parked);
    }
    if (parked) REQUIRE(engine.executor().operate().bypass(id, note).ok());
    engine.run();
    CHECK(engine.result(id).state == ProcedureState::kRolledBack);
    REQUIRE(engine.executor().health().ok());
    return engine.result(id).status.message().find("ffff") != std::string::npos;  // not "too large"
  };
  std::size_t fits = 1000;
  std::size_t too_many = 64 << 10;
  REQUIRE(run_with(fits));
  while (too_many - fits > 1) {
    const std::size_t middle = (fits + too_many) / 2;
    (run_with(middle) ? fits : too_many) = middle;
  }
  // The record of step 2 has an error of 2 KiB, and a step leaves room for later records.
  CHECK(fits > (64 << 10) - limits::kLaterRecordBytes - 2300);
  CHECK(fits < (64 << 10) - limits::kLaterRecordBytes);
}

TEST_CASE("a tree with more orders than a batch has rows is acknowledged") {
  EngineWorld engine;
  engine.store_options.limits = {.batch_operations = 20, .batch_bytes = 64 << 10};
  engine.world.scripts["a"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 2) return Say::fail("no");
                                 return std::nullopt;
                               },
                               .undo = [](JobRun&) { return Say::fail("not now"); }};
  engine.open();
  const ProcedureId id = engine.submit("a", {.nonce = {1, 2}});
  engine.run();
  for (int i = 0; i < 30; ++i) {
    REQUIRE(
        engine.executor().operate().retry_now(id, {.who = "a program", .why = "it is stuck"}).ok());
    engine.run();
  }
  REQUIRE(engine.executor().operate().bypass(id, {.who = "a program", .why = "it is stuck"}).ok());
  engine.run();
  REQUIRE(engine.executor().operate().audit(id)->size() == 31);

  std::optional<Status> answer;
  engine.executor().async().acknowledge(id, [&](const Status& status) { answer = status; });
  engine.run();

  REQUIRE(answer);
  CHECK(answer->to_string() == "OK");
  std::size_t left = 0;
  REQUIRE(engine.store()
              .scan(Space::kProcedure, "",
                    [&](const StoredRow&) {
                      ++left;
                      return Status();
                    })
              .ok());
  CHECK(left == 0);
  must_be_well(engine);
}

TEST_CASE("absurd options are refused by name, and nothing is opened") {
  EngineWorld engine;
  const auto refusal = [&](const std::function<void(ExecutorOptions&)>& change) {
    ExecutorOptions options = engine.options();
    change(options);
    return ProcedureExecutor::open(std::move(options)).status();
  };
  using Options = ExecutorOptions;
  must_say(refusal([](Options& o) { o.workers = 4'000'000'000U; }), StatusCode::kInvalidArgument,
           "ExecutorOptions.workers is 4000000000; at most 1024");
  must_say(refusal([](Options& o) { o.pool_threads = 4'000'000'000U; }),
           StatusCode::kInvalidArgument, "ExecutorOptions.pool_threads is 4000000000");
  must_say(refusal([](Options& o) {
             o.workers = 1;
             o.pool_threads = 0;
           }),
           StatusCode::kInvalidArgument, "ExecutorOptions.pool_threads is 0");
  must_say(refusal([](Options& o) { o.stuck_after = -1s; }), StatusCode::kInvalidArgument,
           "ExecutorOptions.stuck_after is negative");
  must_say(refusal([](Options& o) { o.max_live_procedures = 0; }), StatusCode::kInvalidArgument,
           "ExecutorOptions.max_live_procedures is 0");
  must_say(refusal([](Options& o) {
             o.row_bindings.push_back({std::string(4097, 'p'), {ResourceClass::kGlobal, "x"}});
           }),
           StatusCode::kInvalidArgument, "a prefix of ExecutorOptions.row_bindings has 4097 bytes");
  must_say(refusal([](Options& o) {
             o.row_bindings.push_back({"p", {ResourceClass::kMeta, kHuge}});
           }),
           StatusCode::kInvalidArgument, "has 17825792 bytes; at most 4096");
  must_say(refusal([](Options& o) {
             for (int i = 0; i < 257; ++i) {
               o.row_bindings.push_back({std::to_string(i), {ResourceClass::kGlobal, "x"}});
             }
           }),
           StatusCode::kInvalidArgument, "ExecutorOptions.row_bindings has 257 entries");
  must_say(refusal([](Options& o) {
             o.store = memory(std::make_shared<MemoryDisk>(),
                              {.limits = {.batch_operations = 4, .batch_bytes = 1000}});
           }),
           StatusCode::kInvalidArgument,
           "takes 4 rows and 1000 bytes in a batch; the engine needs");
  engine.open();
  must_be_well(engine);
}

TEST_CASE("records are bounded even on a store without limits") {
  CHECK(record_bytes_max({.batch_operations = SIZE_MAX, .batch_bytes = SIZE_MAX}) ==
        limits::kRecordBytes);
  CHECK(record_bytes_max({.batch_operations = 10, .batch_bytes = 1000}) == 1000);
}

}  // namespace pv2::testing::handed_in_test
