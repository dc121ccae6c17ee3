// SPDX-License-Identifier: Apache-2.0
//
// How long results are kept, and what happens when there are too many: nothing is forgotten early,
// new keyed submissions are refused, and known ones are answered. (X8; idempotency 2.4.)

#include <pv2/store/noop_procedure_store.h>

#include <thread>

#include "records/audit_row.h"
#include "records/kept_result.h"
#include "records/row_keys.h"
#include "support/engine_world.h"
#include "support/older_rows.h"
#include "support/wrapped_store.h"

namespace pv2::testing::retention_test {
namespace {

using namespace std::chrono_literals;

void open(EngineWorld& engine, RetentionPolicy policy) {
  engine.world.scripts["a"] = {.steps = 1};
  engine.world.scripts["b"] = {.steps = 1};
  engine.world.scripts["c"] = {.steps = 1};
  auto options = engine.options();
  options.retention = policy;
  engine.open(std::move(options));
}

// The number of rows, without the schemas of the types.
std::size_t rows_of(EngineWorld& engine) {
  return engine.disk->rows() - engine.disk->rows(Space::kEngine, "schema:");
}

StatusCode submit_keyed(EngineWorld& engine, const std::string& name, std::uint64_t nonce) {
  return engine.executor().submit(Job(engine.world, name), {.nonce = {1, nonce}}).status().code();
}

StatusCode asked_for(EngineWorld& engine, ProcedureId id) {
  StatusCode code = StatusCode::kInternal;
  engine.executor().async().wait(
      id, [&](const Result<ProcedureResult>& result) { code = result.status().code(); });
  engine.run();
  return code;
}

// Keeps results for an hour, and none in memory. Two procedures end; returns the first.
ProcedureId end_two_keyed(EngineWorld& engine) {
  engine.max_results_in_memory = 0;
  open(engine, {.ttl = 1h});
  const ProcedureId first = engine.submit("a", {.nonce = {1, 1}});
  engine.run();
  engine.submit("b", {.nonce = {1, 2}});
  engine.run();
  return first;
}

}  // namespace

TEST_CASE("a result is kept for its time and then forgotten with its nonce, also after a restart") {
  EngineWorld engine;
  open(engine, {.ttl = 1h});
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}});
  engine.run();
  engine.advance(1h - 1us);
  CHECK(asked_for(engine, id) == StatusCode::kOk);
  const bool restart = GENERATE(false, true);
  if (restart) open(engine, {.ttl = 1h});
  engine.advance(1us);
  CHECK(asked_for(engine, id) == StatusCode::kExpired);
  CHECK(engine.executor().inspect().history(id).status().code() == StatusCode::kExpired);
  const auto again = engine.executor().submit(Job(engine.world, "a"), {.nonce = {1, 1}});
  REQUIRE(again.ok());
  CHECK_FALSE(again->replayed);
}

TEST_CASE("an expiry that a crash interrupts is made up for by the next run") {
  EngineWorld engine;
  open(engine, {.ttl = 1h});
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}});
  engine.run();
  // The age of the store is durable before anything is deleted by it.
  engine.faults().crash_before(engine.faults().commits() + 2, FaultStore::AfterCrash::kFail);
  engine.clock->advance(2h);
  engine.run();
  open(engine, {.ttl = 1h});
  engine.run();
  CHECK(asked_for(engine, id) == StatusCode::kExpired);
}

TEST_CASE("without a time to live no result is forgotten before it is acknowledged") {
  EngineWorld engine;
  open(engine, {.max_keyed_results = 10});
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}});
  engine.run();
  engine.advance(24h * 365);
  CHECK(asked_for(engine, id) == StatusCode::kOk);
}

TEST_CASE("at the limit of keyed results a new nonce is refused and a known one is answered") {
  EngineWorld engine;
  open(engine, {.max_keyed_results = 2});
  const ProcedureId a = engine.submit("a", {.nonce = {1, 1}});
  engine.submit("b", {.nonce = {1, 2}});
  engine.run();
  const bool restart = GENERATE(false, true);
  if (restart) open(engine, {.max_keyed_results = 2});

  CHECK(submit_keyed(engine, "c", 3) == StatusCode::kResourceExhausted);
  const auto known = engine.executor().submit(Job(engine.world, "a"), {.nonce = {1, 1}});
  REQUIRE(known.ok());
  CHECK(known->id == a);
  CHECK(known->replayed);
  CHECK(asked_for(engine, engine.submit("c")) == StatusCode::kOk);  // without a nonce

  engine.executor().async().acknowledge(a, [](const Status&) {});
  engine.run();
  CHECK(submit_keyed(engine, "c", 3) == StatusCode::kOk);
}

TEST_CASE("a live procedure with a nonce counts towards the limit of keyed results") {
  EngineWorld engine;
  engine.world.scripts["asks"] = {
      .steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
        const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
        return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
      }};
  open(engine, {.max_keyed_results = 3});
  engine.submit("asks", {.nonce = {1, 1}});
  const ProcedureId ended = engine.submit("a", {.nonce = {1, 2}});
  engine.run();
  const int restarts = GENERATE(0, 1);
  if (restarts != 0) open(engine, {.max_keyed_results = 3});
  engine.submit("asks", {.nonce = {1, 3}});

  CHECK(submit_keyed(engine, "c", 4) == StatusCode::kResourceExhausted);
  CHECK(submit_keyed(engine, "asks", 1) == StatusCode::kOk);  // known
  engine.submit("c");                                         // without a nonce
  engine.run();
  CHECK(submit_keyed(engine, "c", 4) == StatusCode::kResourceExhausted);
  CHECK(engine.executor().acknowledge(ended).ok());
  CHECK(submit_keyed(engine, "c", 4) == StatusCode::kOk);
  CHECK(submit_keyed(engine, "c", 5) == StatusCode::kResourceExhausted);
}

TEST_CASE("a submission by a step counts towards the limit until the step turns out not to end") {
  EngineWorld engine;
  engine.world.scripts["submitter"] = {.steps = 1,
                                       .run = [](JobRun& run) -> std::optional<Outcome> {
                                         run.ctx.submit(Job(run.world, "a"), {.nonce = {1, 1}});
                                         // This one is refused, so the first is withdrawn.
                                         run.ctx.submit(Job(run.world, "b"), {.nonce = {1, 1}});
                                         return std::nullopt;
                                       }};
  open(engine, {.max_keyed_results = 1});
  const ProcedureId id = engine.submit("submitter");
  engine.run();
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(submit_keyed(engine, "c", 2) == StatusCode::kOk);
  CHECK(submit_keyed(engine, "c", 3) == StatusCode::kResourceExhausted);
}

TEST_CASE("at the limit of bytes a new nonce is refused until a result is acknowledged") {
  EngineWorld engine;
  open(engine, {.max_bytes = 1});
  const ProcedureId a = engine.submit("a", {.nonce = {1, 1}});  // nothing is kept yet
  engine.run();
  CHECK(submit_keyed(engine, "b", 2) == StatusCode::kResourceExhausted);

  engine.executor().async().acknowledge(a, [](const Status&) {});
  engine.run();
  CHECK(submit_keyed(engine, "b", 2) == StatusCode::kOk);
}

TEST_CASE("a result that could not be deleted when its time was over is deleted later") {
  // A result that has left memory is read before it is deleted; the disk may fail just then.
  class Unreadable final : public WrappedStore {
   public:
    using WrappedStore::WrappedStore;
    Result<std::optional<std::string>> get(Space space, std::string_view key) override {
      if (fails) return Status(StatusCode::kIoError, "cannot be read just now");
      return WrappedStore::get(space, key);
    }
    Status scan(Space space, std::string_view prefix, const RowVisitor& visit) override {
      if (fails && space == Space::kProcedure) {
        return Status(StatusCode::kIoError, "cannot be read just now");
      }
      return WrappedStore::scan(space, prefix, visit);
    }
    bool fails = false;
  };
  EngineWorld engine;
  open(engine, {.ttl = 1h});
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}});
  engine.run();
  auto options = engine.options();
  options.retention.ttl = 1h;
  auto store = std::make_unique<Unreadable>(std::move(options.store));
  Unreadable& unreadable = *store;
  options.store = std::move(store);
  engine.open(std::move(options));

  unreadable.fails = true;
  engine.advance(1h);
  engine.advance(1h);
  unreadable.fails = false;
  CHECK(asked_for(engine, id) == StatusCode::kOk);
  engine.advance(1h);
  CHECK(asked_for(engine, id) == StatusCode::kExpired);
}

TEST_CASE("a wall clock that is wrong for three minutes makes no key expire early") {
  const auto jump = GENERATE(Duration(25h), Duration(-25h), Duration(24h * 365));
  const int restarts = GENERATE(0, 1, 2);
  EngineWorld engine;
  open(engine, {.ttl = 24h});
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}});
  engine.run();
  engine.advance(1h);

  engine.clock->jump_wall(jump);
  for (int i = 0; i < restarts; ++i) open(engine, {.ttl = 24h});
  for (int i = 0; i < 3; ++i) engine.advance(1min);
  engine.clock->jump_wall(-jump);
  engine.advance(1min);
  const auto again = engine.executor().submit(Job(engine.world, "a"), {.nonce = {1, 1}});
  REQUIRE(again.ok());
  CHECK(again->replayed);
  CHECK(again->id == id);

  engine.advance(24h - 1h - 4min - 1us);
  CHECK(asked_for(engine, id) == StatusCode::kOk);
  engine.advance(1us);
  CHECK(asked_for(engine, id) == StatusCode::kExpired);
}

TEST_CASE("a result is kept for its time wherever the wall clock jumps while a process runs") {
  const auto jump = GENERATE(Duration(-48h), Duration(-30min), Duration(30min), Duration(48h));
  const int at = GENERATE(0, 1, 5);  // ten minutes each
  const bool before_its_end = GENERATE(false, true);
  EngineWorld engine;
  open(engine, {.ttl = 1h});
  if (before_its_end) engine.clock->jump_wall(-jump);
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}});
  engine.run();
  for (int i = 0; i < 6; ++i) {
    if (i == at) engine.clock->jump_wall(jump);
    engine.advance(10min - 1us);
    CHECK(asked_for(engine, id) == StatusCode::kOk);
    engine.advance(1us);
  }
  CHECK(asked_for(engine, id) == StatusCode::kExpired);
}

TEST_CASE("the time in which no process ran counts when the wall clock is beyond doubt") {
  EngineWorld engine;
  open(engine, {.ttl = 24h});
  engine.advance(30min);
  engine.advance(31min);  // the clocks have agreed for an hour
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}});
  engine.run();
  engine.clock->advance(1min);  // the stop looks at the clocks again
  engine.close();
  engine.clock->advance(48h);
  const bool in_doubt = GENERATE(false, true);
  open(engine, {.ttl = 24h});
  engine.run();
  engine.advance(59min);
  CHECK(asked_for(engine, id) == StatusCode::kOk);
  if (in_doubt) engine.clock->jump_wall(10min);
  engine.advance(2min);
  CHECK(asked_for(engine, id) == (in_doubt ? StatusCode::kOk : StatusCode::kExpired));
  engine.advance(1h);
  CHECK(asked_for(engine, id) == StatusCode::kExpired);
}

TEST_CASE(
    "what ends after a gap between processes is kept for its time, also when the gap counts") {
  EngineWorld engine;
  open(engine, {.ttl = 30min});
  for (int i = 0; i < 13; ++i) engine.advance(5min);  // the clocks have agreed for an hour
  engine.close();
  engine.clock->advance(10h);
  open(engine, {.ttl = 30min});
  for (int i = 0; i < 11; ++i) engine.advance(5min);
  const ProcedureId id = engine.submit("a", {.nonce = {7, 7}});
  engine.run();
  for (int i = 0; i < 5; ++i) {
    engine.advance(6min - 1us);  // in the first of them the clocks have agreed for an hour
    CHECK(engine.executor().submit(Job(engine.world, "a"), {.nonce = {7, 7}})->id == id);
    engine.advance(1us);
  }
  CHECK(asked_for(engine, id) == StatusCode::kExpired);
}

TEST_CASE("a result is kept for its time although the gap before its process is known only later") {
  EngineWorld engine;
  open(engine, {.ttl = 3h});
  for (int i = 0; i < 13; ++i) engine.advance(5min);  // the clocks have agreed for an hour
  engine.close();
  engine.clock->advance(10h);
  open(engine, {.ttl = 3h});  // this process is too short to trust its clock
  const ProcedureId id = engine.submit("a", {.nonce = {7, 7}});
  engine.run();
  engine.advance(20min);
  open(engine, {.ttl = 3h});
  for (int i = 0; i < 16; ++i) engine.advance(10min - 1us);
  CHECK(asked_for(engine, id) == StatusCode::kOk);
  engine.advance(16us);
  CHECK(asked_for(engine, id) == StatusCode::kExpired);
}

TEST_CASE("many results whose time is over are forgotten at once, and no younger ones are read") {
  class Counting final : public WrappedStore {
   public:
    using WrappedStore::WrappedStore;
    Status scan(Space space, std::string_view prefix, const RowVisitor& visit) override {
      return WrappedStore::scan(space, prefix, [&](const StoredRow& row) {
        if (space == Space::kEngine) ++dates;
        return visit(row);
      });
    }
    std::size_t dates = 0;
  };
  EngineWorld engine;
  engine.max_live_procedures = 10'000;
  engine.world.scripts["a"] = {.steps = 1};
  auto options = engine.options();
  options.retention.ttl = 1h;
  auto store = std::make_unique<Counting>(std::move(options.store));
  Counting& counting = *store;
  options.store = std::move(store);
  engine.open(std::move(options));
  constexpr std::size_t kMany = 5000;  // more than one search finds; they take many batches
  for (std::size_t i = 0; i < kMany; ++i) engine.submit("a");
  engine.run();
  engine.advance(30min);
  for (std::size_t i = 0; i < kMany; ++i) engine.submit("a");
  engine.run();
  REQUIRE(rows_of(engine) == 1 + 2 * 2 * kMany);
  counting.dates = 0;
  engine.advance(1min);
  CHECK(counting.dates <= 2);  // the oldest is too young

  engine.advance(29min);
  CHECK(rows_of(engine) == 1 + 2 * kMany);
  CHECK(counting.dates < kMany + 20);
  engine.advance(30min);
  CHECK(rows_of(engine) == 1);
}

TEST_CASE("a start reads no result, however many are kept, but counts their dates for a limit") {
  class Counting final : public WrappedStore {
   public:
    using WrappedStore::WrappedStore;
    Result<std::optional<std::string>> get(Space space, std::string_view key) override {
      ++read;
      return WrappedStore::get(space, key);
    }
    Status scan(Space space, std::string_view prefix, const RowVisitor& visit) override {
      return WrappedStore::scan(space, prefix, [&](const StoredRow& row) {
        ++read;
        return visit(row);
      });
    }
    std::size_t read = 0;
  };
  const auto read_by_open = [](std::size_t results, std::size_t limit) {
    EngineWorld engine;
    open(engine, {.max_keyed_results = limit});
    for (std::size_t i = 0; i < results; ++i) {
      engine.submit("a", {.nonce = {1, i + 1}});
      engine.run();
    }
    engine.submit("b", {.nonce = {2, 1}});
    auto options = engine.options();
    auto store = std::make_unique<Counting>(std::move(options.store));
    Counting& counting = *store;
    options.store = std::move(store);
    options.retention.max_keyed_results = limit;
    engine.open(std::move(options));
    const std::size_t read = counting.read;
    engine.run();
    if (limit != 0) {  // results kept before count
      CHECK(submit_keyed(engine, "a", 1) == StatusCode::kOk);
      CHECK(submit_keyed(engine, "a", results + 1) == StatusCode::kResourceExhausted);
    }
    return read;
  };
  CHECK(read_by_open(10, 0) == read_by_open(40, 0));
  CHECK(read_by_open(10, 11) + 30 == read_by_open(40, 41));
}

TEST_CASE("an abort that takes a success back takes its date back too") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  open(engine, {.ttl = 1h});
  const ProcedureId id = engine.submit("a");
  engine.faults().hold_commit(engine.faults().commits() + 1);
  engine.executor().async().abort(id, {}, [](const Status&) {});
  engine.run();
  engine.faults().release();
  engine.run();
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(rows_of(engine) == 1 + 3);  // watermark; result, one date, the audit of the abort
  engine.advance(1h);
  CHECK(rows_of(engine) == 1);
}

TEST_CASE("a success that an abort takes back is undone after a restart, and has one result") {
  const bool older = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 1};
  open(engine, {.ttl = 1h});
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}});
  const std::size_t abort = engine.faults().commits() + 1;
  engine.faults().hold_commit(abort);
  engine.faults().crash_before(abort + 2, FaultStore::AfterCrash::kFail);  // no undo is durable
  engine.executor().async().abort(id, {}, [](const Status&) {});
  engine.run();
  engine.faults().release();
  engine.run();
  engine.close();
  CHECK_FALSE(engine.disk->get(Space::kProcedure, procedure_key(id, RowKind::kHeader)).has_value());
  CHECK(engine.disk->get(Space::kResult, result_key(id)).has_value());
  if (older) leave_among_live_ones(*engine.disk, id);
  // Behind its rows lies the audit row of an order whose root does not exist.
  RowBatch order;
  const ProcedureId gone{id.value + 1};
  AuditEntry entry;
  entry.procedure = gone;
  insert_audit(entry, gone, 1, order);
  order.for_each([&](RowOperation, Space space, std::string_view key, std::string_view value) {
    engine.disk->put(space, key, value);
  });

  open(engine, {.ttl = 1h});
  const auto again = engine.executor().submit(Job(engine.world, "a"), {.nonce = {1, 1}});
  REQUIRE(again.ok());
  CHECK(again->replayed);
  engine.run();
  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK(engine.journal().back() == "undo a.1");
  CHECK(rows_of(engine) == 1 + 4);  // watermark; result, one date, nonce, the audit of the abort
  engine.advance(1h);
  CHECK(rows_of(engine) == 1);
}

TEST_CASE("undated results of an older program are dated once and forgotten in their time") {
  EngineWorld engine;
  open(engine, {.ttl = 1h});
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}});
  engine.run();
  engine.close();
  REQUIRE(rows_of(engine) == 4);
  leave_undated(*engine.disk, id);

  open(engine, {.ttl = 1h});
  engine.run();
  CHECK(rows_of(engine) == 5);
  engine.advance(30min);
  open(engine, {.ttl = 1h});
  engine.run();
  CHECK(rows_of(engine) == 5);
  engine.advance(30min - 1us);
  CHECK(asked_for(engine, id) == StatusCode::kOk);
  engine.advance(1us);
  CHECK(asked_for(engine, id) == StatusCode::kExpired);
  CHECK(rows_of(engine) == 1);
}

TEST_CASE("a result that was dated when found counts towards the limit until it is acknowledged") {
  EngineWorld engine;
  open(engine, {});
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}});
  engine.run();
  engine.close();
  leave_undated(*engine.disk, id);

  open(engine, {.max_keyed_results = 1});
  engine.run();
  CHECK(submit_keyed(engine, "b", 2) == StatusCode::kResourceExhausted);
  REQUIRE(engine.executor().acknowledge(id).ok());
  open(engine, {.max_keyed_results = 1});
  engine.run();
  CHECK(rows_of(engine) == 1);  // the watermark: its date is gone too
  CHECK(submit_keyed(engine, "b", 2) == StatusCode::kOk);
}

TEST_CASE(
    "a damaged result stays and is reported once, and results behind it are forgotten in time") {
  EngineWorld engine;
  const ProcedureId damaged = end_two_keyed(engine);
  engine.disk->put(Space::kResult, result_key(damaged), "damaged");
  engine.submit("c", {.nonce = {1, 3}});  // another takes its place in memory
  engine.run();
  engine.log_lines.clear();
  for (int hour = 0; hour < 3; ++hour) engine.advance(1h);

  CHECK(rows_of(engine) == 1 + 2);  // the watermark; the damaged result and its nonce
  REQUIRE(engine.log_lines.size() == 1);
  CHECK_THAT(engine.log_lines[0], ContainsSubstring("cannot be read: it stays, with its nonce"));
  CHECK(asked_for(engine, damaged) == StatusCode::kCorruption);
  const auto again = engine.executor().submit(Job(engine.world, "a"), {.nonce = {1, 1}});
  REQUIRE(again.ok());
  CHECK(again->id == damaged);
}

TEST_CASE("a result whose date is damaged stays and is reported once, and others go in time") {
  EngineWorld engine;
  const ProcedureId damaged = end_two_keyed(engine);
  std::string date;
  const auto find = [&](const StoredRow& row) {
    if (decode_kept(row.key, row.value)->id == damaged) date = row.key;
    return Status();
  };
  REQUIRE(engine.store().scan(Space::kEngine, kKeptKeyPrefix, find).ok());
  engine.disk->put(Space::kEngine, date, "damaged");
  engine.log_lines.clear();
  for (int hour = 0; hour < 3; ++hour) engine.advance(1h);

  CHECK(rows_of(engine) == 1 + 3);  // the watermark; the result, its date and its nonce
  REQUIRE(engine.log_lines.size() == 1);
  CHECK_THAT(engine.log_lines[0],
             ContainsSubstring("dates of 1 results") && ContainsSubstring("are acknowledged") &&
                 ContainsSubstring("of procedure " + std::to_string(damaged.value)));
  CHECK(engine.result(damaged).status.ok());
}

TEST_CASE("a result row that holds the result of another procedure is reported as damaged") {
  EngineWorld engine;
  engine.max_results_in_memory = 0;
  open(engine, {});
  const ProcedureId one = engine.submit("a");
  const ProcedureId other = engine.submit("b");
  engine.run();
  engine.close();
  engine.disk->put(Space::kResult, result_key(one),
                   *engine.disk->get(Space::kResult, result_key(other)));
  open(engine, {});
  CHECK(asked_for(engine, one) == StatusCode::kCorruption);
  CHECK(asked_for(engine, other) == StatusCode::kOk);
}

TEST_CASE("a damaged result with audit rows of orders does not prevent a start") {
  EngineWorld engine;
  engine.world.scripts["asks"] = {
      .steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
        const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
        return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
      }};
  open(engine, {});
  const ProcedureId id = engine.submit("asks");
  engine.run();
  engine.executor().async().abort(id, {}, [](const Status&) {});
  engine.run();
  REQUIRE(engine.executor().operate().audit(id)->size() == 1);
  engine.close();
  engine.disk->put(Space::kResult, result_key(id), "damaged");
  open(engine, {});
  CHECK(asked_for(engine, id) == StatusCode::kCorruption);
}

TEST_CASE("the bytes of kept results are right over restarts and acknowledgements") {
  EngineWorld engine;
  engine.max_results_in_memory = 1;
  const RetentionPolicy policy{.max_bytes = 700};
  open(engine, policy);
  const ProcedureId a = engine.submit("a", {.nonce = {1, 1}});
  const ProcedureId b = engine.submit("b", {.nonce = {1, 2}});
  const ProcedureId c = engine.submit("c", {.nonce = {1, 3}});
  engine.run();
  if (GENERATE(false, true)) open(engine, policy);
  CHECK(submit_keyed(engine, "a", 4) == StatusCode::kResourceExhausted);
  for (const ProcedureId id : {a, b, c}) REQUIRE(engine.executor().acknowledge(id).ok());
  CHECK(submit_keyed(engine, "a", 4) == StatusCode::kOk);
}

TEST_CASE("results that no store keeps are forgotten in their time too") {
  World world;
  world.scripts["a"] = {.steps = 1};
  ExecutorOptions options;
  options.store = noop();
  options.workers = 0;
  options.clock = std::make_shared<ManualClock>();
  const auto clock = std::static_pointer_cast<ManualClock>(options.clock);
  options.retention.ttl = 1h;
  options.log = {};
  add_job_types(options.registry, world);
  auto executor = ProcedureExecutor::open(std::move(options)).value();
  executor->start();
  const ProcedureId id = executor->submit(Job(world, "a"), {.nonce = {1, 1}})->id;
  executor->run_until_idle();
  clock->advance(1h - 1us);
  executor->run_until_idle();
  CHECK(executor->submit(Job(world, "a"), {.nonce = {1, 1}})->replayed);
  clock->advance(1us);
  executor->run_until_idle();
  CHECK(executor->submit(Job(world, "a"), {.nonce = {1, 1}})->id != id);
}

TEST_CASE("results are forgotten in their time by an executor with threads and no other timer") {
  World world;
  world.scripts["a"] = {.steps = 1};
  const auto clock = std::make_shared<ManualClock>();
  ExecutorOptions options;
  options.store =
      memory(std::make_shared<MemoryDisk>(), {.mode = MemoryStoreOptions::Mode::kThread});
  options.workers = 2;
  options.clock = clock;
  options.retention.ttl = 1h;
  options.stuck_after = Duration(0);
  options.log = {};
  add_job_types(options.registry, world);
  auto executor = ProcedureExecutor::open(std::move(options)).value();
  executor->start();
  const ProcedureId id = executor->submit(Job(world, "a"))->id;
  REQUIRE(executor->wait(id)->status.ok());
  clock->advance(1h);
  // The pool looks for expired results by itself; no call has to trigger that.
  while (executor->wait(id).status().code() != StatusCode::kExpired) std::this_thread::yield();
}

TEST_CASE("a time to live that clients could outlast is refused") {
  EngineWorld engine;
  auto options = engine.options();
  options.retention.ttl = 29min;
  CHECK(ProcedureExecutor::open(std::move(options)).status().code() ==
        StatusCode::kInvalidArgument);
}

}  // namespace pv2::testing::retention_test
