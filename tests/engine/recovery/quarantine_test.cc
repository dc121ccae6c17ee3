// SPDX-License-Identifier: Apache-2.0
//
// Records that cannot be understood. Their tree is frozen with its locks, listed with the reason
// and never deleted, and everything else runs. If even the engine's part is unreadable, open()
// refuses the store and names the record. (Rows 71, 73, 79 and X10 of behaviour.md.)

#include <pv2/base/frame.h>
#include <pv2/base/wire.h>

#include <cstdint>
#include <functional>

#include "core/procedure_ids.h"
#include "model/inbox.h"
#include "records/header_codec.h"
#include "records/inbox_codec.h"
#include "records/row_keys.h"
#include "records/row_parts.h"
#include "records/state_codec.h"
#include "records/watermark.h"
#include "support/engine_world.h"
#include "support/repair_orders.h"
#include "support/rows_in_store.h"

namespace pv2::testing::quarantine_test {
namespace {

using namespace std::chrono_literals;

const auto kOrders = LockSet().table("shop", "orders", LockMode::kExclusive);

JobScript asks() {
  return {.run = [](JobRun& run) -> std::optional<Outcome> {
            if (run.step != 2) return std::nullopt;
            const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
            return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
          },
          .locks = kOrders};
}

// Runs a life that leaves an "a" waiting for an answer, and returns its id.
ProcedureId one_that_waits(EngineWorld& engine, SubmitOptions options = {}) {
  engine.world.scripts["a"] = asks();
  engine.open();
  const ProcedureId id = engine.submit("a", std::move(options));
  engine.run();
  engine.close();
  return id;
}

std::string row(const MemoryDisk& disk, ProcedureId id, RowKind kind) {
  return disk.get(Space::kProcedure, procedure_key(id, kind)).value();
}
void put_row(MemoryDisk& disk, ProcedureId id, RowKind kind, const std::string& value) {
  disk.put(Space::kProcedure, procedure_key(id, kind), value);
}

// test.Job in a program that knows only its first step.
struct Shorter : JobKind {
  static constexpr auto kSteps = steps(step(JobStep::kOne, "ONE", kUndoable));
};

// Its only step has no undo. In the second version field 2 is of another type.
struct OldKind : JobKind {
  static constexpr std::string_view kType = "test.Old";
  static constexpr auto kSteps = steps(step(JobStep::kOne, "ONE", kNoUndo));
};
using Old = ScriptedJob<OldKind>;
class OldWithCount final : public StateMachineProcedure<JobStep> {
 public:
  static constexpr std::string_view kType = OldKind::kType;
  static constexpr auto kSteps = OldKind::kSteps;
  void fields(auto& f) {
    f.arg(1, "name", name_);
    f(2, "count", count_);
  }
  Flow execute_from_state(JobStep /*step*/, StepContext& /*ctx*/) override { return done(); }

 private:
  std::string name_;
  std::uint32_t count_ = 0;
};
struct FinalOldKind : OldKind {
  static constexpr std::string_view kType = "test.FinalOld";
  static constexpr bool kFinalOnSuccess = true;
};
using FinalOld = ScriptedJob<FinalOldKind>;
// test.FinalJob without its first step.
struct ShorterFinal : FinalJobKind {
  static constexpr auto kSteps = steps(step(JobStep::kTwo, "TWO", kUndoable));
};

// Opens with one type more, and runs "p".
template <class Type>
ProcedureId run_with(EngineWorld& engine) {
  ExecutorOptions options = engine.options();
  options.registry.add<Type>(engine.world);
  engine.open(std::move(options));
  const ProcedureId root = engine.submit("p");
  engine.run();
  return root;
}

// Opens after a crash, with other types than test.Job.
template <class... Types>
void crash_and_open_with(EngineWorld& engine) {
  engine.faults().crash_before(engine.faults().commits() + 1, FaultStore::AfterCrash::kFail);
  ExecutorOptions options = engine.options();
  options.registry = ProcedureRegistry();
  options.registry.add<Job>(engine.world);
  (options.registry.add<Types>(), ...);
  options.registry.add<ScriptedJob<ShorterFinal>>(engine.world);
  engine.open(std::move(options));
}

// Opens without one of the types.
void open_without_final_jobs(EngineWorld& engine) {
  ExecutorOptions options = engine.options();
  options.registry = ProcedureRegistry();
  options.registry.add<Job>(engine.world);
  engine.open(std::move(options));
}

// Rewrites a record with a right checksum and contents that the engine would never write.
template <class Change>
void change_state(MemoryDisk& disk, ProcedureId id, const Change& change) {
  Execution execution;
  PartStatus user = PartStatus::kIntact;
  REQUIRE(decode_state(row(disk, id, RowKind::kState), CommitSequence{1}, execution, user).ok());
  Transition next;
  next.state = execution.record.state;
  next.step = execution.record.step;
  next.holds_locks = execution.record.holds_locks;
  change(execution, next);
  std::string bytes;
  encode_state(execution, next, 1, bytes);
  put_row(disk, id, RowKind::kState, bytes);
}

void change_relatives(MemoryDisk& disk, ProcedureId id, ProcedureId parent_id,
                      ProcedureId root_id) {
  Execution execution;
  HeaderFacts facts;
  const std::string header = row(disk, id, RowKind::kHeader);
  REQUIRE(decode_header(header, execution, facts).ok());
  Execution parent;
  Execution root;
  parent.id = parent_id;
  root.id = root_id;
  execution.set_parent(&parent);
  execution.edit_place().root = &root;
  execution.names.edit().type = facts.type_name;
  std::string bytes;
  encode_header(execution, bytes);
  put_row(disk, id, RowKind::kHeader, bytes);
  execution.set_parent(nullptr);
}

// Adds locks of the host's own class to a record until it has `count` locks.
void fill_with_locks(MemoryDisk& disk, ProcedureId id, std::size_t count) {
  Execution execution;
  HeaderFacts facts;
  const std::string header = row(disk, id, RowKind::kHeader);
  REQUIRE(decode_header(header, execution, facts).ok());
  for (std::size_t i = 100'000; execution.locks().size() < count; ++i) {
    execution.edit_locks().key({ResourceClass::kHostFirst, std::to_string(i)},
                               LockMode::kExclusive);
  }
  execution.names.edit().type = facts.type_name;
  std::string bytes;
  encode_header(execution, bytes);
  put_row(disk, id, RowKind::kHeader, bytes);
}

Status open_fails(EngineWorld& engine) {
  engine.close();
  return ProcedureExecutor::open(engine.options()).status();
}

}  // namespace

TEST_CASE("an unknown type is quarantined with its locks, and goes on with a build that knows it") {
  EngineWorld engine;
  engine.world.scripts["final"] = asks();
  engine.world.scripts["same table"] = {.locks = kOrders};
  engine.world.scripts["free"] = {};
  engine.open();
  const ProcedureId id = engine.submit<FinalJob>("final", {.nonce = {1, 1}, .owner = "alice"});
  engine.run();
  open_without_final_jobs(engine);
  const ProcedureId blocked = engine.submit("same table");
  const ProcedureId free = engine.submit("free");
  engine.run();

  CHECK(engine.result(free).status.ok());
  CHECK(engine.world.journal.count("do same table.1") == 0);
  const ProcedureInfo info = engine.describe(id);
  CHECK(info.quarantined);
  CHECK_FALSE(info.parked);
  CHECK(info.type == "test.FinalJob");
  CHECK(info.owner == "alice");
  CHECK(info.holds_locks);
  CHECK_THAT(info.error.to_string(), ContainsSubstring("'test.FinalJob' is not registered"));
  REQUIRE_FALSE(engine.log_lines.empty());
  CHECK_THAT(engine.log_lines.back(), ContainsSubstring("quarantined"));
  CHECK(engine.executor().wait(id, std::chrono::milliseconds(0)).status().code() ==
        StatusCode::kDeadlineExceeded);

  engine.open();
  engine.run();
  CHECK_FALSE(engine.describe(id).quarantined);
  while (engine.world.answer_one("go on")) engine.run();
  CHECK(engine.result(id).status.ok());
  CHECK(engine.result(blocked).status.ok());
}

TEST_CASE(
    "a record with more locks than can be counted is quarantined, and holds as many as can be") {
  EngineWorld engine;
  engine.world.scripts["a"] = asks();
  engine.world.scripts["same table"] = {.locks = kOrders};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  engine.close();
  const bool too_many = GENERATE(false, true);
  fill_with_locks(*engine.disk, id, SchedulerEntry::kMaxLocks + (too_many ? 1 : 0));
  engine.open();
  const ProcedureId blocked = engine.submit("same table");
  engine.run();

  const ProcedureInfo info = engine.describe(id);
  CHECK(info.quarantined == too_many);
  CHECK(info.holds_locks);
  CHECK(engine.executor().inspect().locks().size() == SchedulerEntry::kMaxLocks);
  CHECK(engine.world.journal.count("do same table.1") == 0);
  if (too_many) {
    CHECK_THAT(info.error.to_string(),
               ContainsSubstring("it has 65536 locks, and 65535 is the most"));
    REQUIRE(engine.executor().operate().bypass(id, {.who = "anna", .why = "test"}).to_string() ==
            "OK");
  }
  while (engine.world.answer_one("go on")) engine.run();
  engine.run_to_the_end();
  CHECK(engine.result(blocked).status.ok());
}

TEST_CASE("a child of an unknown type freezes its whole tree, and no other") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 2) return std::nullopt;
    run.ctx.spawn(FinalJob(run.world, "final"));
    run.spawn("sibling");
    return std::nullopt;
  }};
  engine.world.scripts["final"] = asks();
  engine.world.scripts["sibling"] = {.steps = 5};
  engine.world.scripts["other"] = {};
  engine.open();
  const ProcedureId root = engine.submit("p");
  const ProcedureId other = engine.submit("other");
  engine.executor().run_until_idle(5);
  open_without_final_jobs(engine);
  const Entries journal = engine.journal();
  engine.run();

  for (const ProcedureInfo& info : engine.executor().inspect().list()) {
    CHECK(info.quarantined == (info.root == root));
  }
  CHECK(engine.world.journal.count("do sibling.5") ==
        static_cast<std::size_t>(std::count(journal.begin(), journal.end(), "do sibling.5")));
  CHECK(engine.result(other).status.ok());
  engine.open();
  engine.run();
  while (engine.world.answer_one("go on")) engine.run();
  CHECK(engine.result(root).status.ok());
}

// Their rows may be there still: they are deleted many at a time.
TEST_CASE("the next version of a program need not understand children that have left") {
  const bool without_type = GENERATE(true, false);
  EngineWorld engine;
  engine.world.scripts["p"] = {
      .steps = 4, .run = [](JobRun& run) -> std::optional<Outcome> {
        if (run.step == 1) {
          run.ctx.spawn(Old(run.world, "old"));
          run.ctx.spawn(FinalJob(run.world, "final"));
        }
        if (run.step == 2) run.spawn("c");
        return run.step == 3 && run.ctx.signal("go") == nullptr ? Say::wait() : usual();
      }};
  engine.world.scripts["old"] = engine.world.scripts["c"] = {.steps = 1};
  engine.world.scripts["final"] = {.steps = 2};
  const ProcedureId root = run_with<Old>(engine);
  REQUIRE(engine.executor().inspect().live_procedures() == 2);

  without_type ? crash_and_open_with<>(engine) : crash_and_open_with<OldWithCount>(engine);

  CHECK_FALSE(engine.describe(root).quarantined);
  CHECK(engine.executor().inspect().live_procedures() == 2);
  REQUIRE(engine.executor().signal(root, "go").to_string() == "OK");
  engine.run();
  CHECK(engine.result(root).status.ok());
}

TEST_CASE("a finished child without anything to undo does not need its type any more") {
  const bool fails = GENERATE(true, false);
  EngineWorld engine;
  std::string seen;
  engine.world.scripts["p"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 2) run.ctx.spawn(Old(run.world, "old"));
    if (run.step != 3) return usual();
    if (run.ctx.signal("go") == nullptr) return Say::wait();
    for (const ChildOutcome& child : run.ctx.children()) {
      seen += std::string(child.type) + ": " + std::string(child.result);
    }
    return fails ? Say::fail("no") : usual();
  }};
  engine.world.scripts["old"] = {.steps = 1};
  const ProcedureId root = run_with<Old>(engine);

  crash_and_open_with<>(engine);

  const ProcedureInfo old = engine.describe({root.value + 1});
  CHECK(old.state == ProcedureState::kSuccess);
  CHECK_FALSE(old.quarantined);
  REQUIRE(engine.executor().signal(root, "go").to_string() == "OK");
  engine.run();
  CHECK(seen == "test.Old: old done");
  CHECK(engine.result(root).status.ok() == !fails);
}

TEST_CASE("what a final child has spawned is not undone by a program without the child's type") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 1) run.ctx.spawn(FinalOld(run.world, "final"));
    return run.step == 2 ? Say::wait_for(std::chrono::hours(1)) : usual();
  }};
  engine.world.scripts["final"] = {.steps = 1, .run = [](JobRun& run) -> std::optional<Outcome> {
                                     run.spawn("c");
                                     return usual();
                                   }};
  engine.world.scripts["c"] = {.steps = 1};
  const ProcedureId root = run_with<FinalOld>(engine);
  REQUIRE(engine.world.journal.count("do c.1") == 1);

  crash_and_open_with<>(engine);
  static_cast<void>(engine.executor().abort(root, {.reason = "test", .who = "anna"}).ok());
  engine.advance(std::chrono::hours(1));

  CHECK(engine.describe(root).quarantined);
  CHECK_THAT(engine.describe(root).error.to_string(), ContainsSubstring("nobody can tell whether"));
  CHECK(engine.world.journal.count("undo c.1") == 0);
}

TEST_CASE("damaged user bytes quarantine their tree, and its nonce, locks and identity stay") {
  EngineWorld engine;
  const auto kind = GENERATE(RowKind::kHeader, RowKind::kState);
  engine.world.scripts["a"] = asks();
  engine.world.scripts["other"] = {};
  engine.open();
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}});
  engine.run();
  engine.close();
  const std::string good = row(*engine.disk, id, kind);
  std::string bad = good;
  bad.back() = static_cast<char>(bad.back() ^ 1);  // the last byte belongs to the user's frame
  put_row(*engine.disk, id, kind, bad);
  engine.open();
  const ProcedureId other = engine.submit("other");
  engine.run();

  CHECK(engine.describe(id).quarantined);
  CHECK(engine.describe(id).holds_locks);
  CHECK_THAT(engine.describe(id).error.to_string(), ContainsSubstring("checksum"));
  CHECK(engine.result(other).status.ok());
  CHECK(row(*engine.disk, id, kind) == bad);

  engine.close();
  put_row(*engine.disk, id, kind, good);
  engine.open();
  CHECK(engine.submit("a", {.nonce = {1, 1}}) == id);
  engine.run();
  while (engine.world.answer_one("go on")) engine.run();
  CHECK(engine.result(id).status.ok());
}

TEST_CASE(
    "whatever single byte of a record is damaged, open quarantines or refuses, and names it") {
  EngineWorld engine;
  engine.world.scripts["a"] = asks();
  engine.world.scripts["other"] = {};
  engine.open();
  const ProcedureId id = engine.submit("a", {.nonce = {1, 1}});
  engine.run();
  engine.close();
  for (const RowKind kind : {RowKind::kHeader, RowKind::kState}) {
    const std::string good = row(*engine.disk, id, kind);
    for (std::size_t at = 0; at < good.size(); ++at) {
      CAPTURE(static_cast<int>(kind), at);
      const auto disk = engine.disk->clone();
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 0x10);
      put_row(*disk, id, kind, bad);
      ExecutorOptions options = engine.options();
      options.store = memory(disk);
      auto opened = ProcedureExecutor::open(std::move(options));
      if (opened.ok()) {
        (*opened)->run_until_idle();
        REQUIRE((*opened)->inspect().describe(id)->quarantined);
      } else {
        REQUIRE(opened.status().code() == StatusCode::kCorruption);
        REQUIRE_THAT(opened.status().to_string(),
                     ContainsSubstring("procedure " + std::to_string(id.value)));
      }
    }
  }
}

TEST_CASE("a torn record is quarantined or refused, at whatever length it was torn") {
  EngineWorld engine;
  const ProcedureId id = one_that_waits(engine);
  for (const RowKind kind : {RowKind::kHeader, RowKind::kState}) {
    const std::string good = row(*engine.disk, id, kind);
    for (std::size_t size = 0; size < good.size(); ++size) {
      CAPTURE(static_cast<int>(kind), size);
      const auto disk = engine.disk->clone();
      put_row(*disk, id, kind, good.substr(0, size));
      ExecutorOptions options = engine.options();
      options.store = memory(disk);
      auto opened = ProcedureExecutor::open(std::move(options));
      if (opened.ok()) {
        REQUIRE((*opened)->inspect().describe(id)->quarantined);
      } else {
        REQUIRE(opened.status().code() == StatusCode::kCorruption);
      }
    }
  }
}

TEST_CASE("a lock of a class that no program has is refused, and is not read as another one") {
  Execution execution;
  execution.id = ProcedureId{1};
  execution.names.edit().type = "t";
  execution.edit_locks().key({static_cast<ResourceClass>(200), "x"}, LockMode::kExclusive);
  std::string bytes;
  encode_header(execution, bytes);
  std::string_view rest = bytes;
  const std::size_t size = read_frame(rest)->size();
  const std::string written = "\xC8\x01";  // 200
  const std::size_t at = bytes.find(written);
  REQUIRE(at != std::string::npos);
  bytes.replace(at, written.size(), "\xC8\x03");  // 456, which is 200 without its upper bits
  seal_frame(bytes.data(), size);

  Execution read;
  HeaderFacts facts;
  const Status refused = decode_header(bytes, read, facts);

  CHECK(refused.code() == StatusCode::kCorruption);
  CHECK_THAT(refused.to_string(), ContainsSubstring("456"));
}

TEST_CASE("a header without a state, or a state without a header, is refused by name") {
  EngineWorld engine;
  const auto kind = GENERATE(RowKind::kHeader, RowKind::kState);
  engine.world.scripts["a"] = {};
  engine.open();
  engine.submit("a");
  const ProcedureId id = engine.submit("a");
  engine.close();
  engine.disk->erase(Space::kProcedure, procedure_key(id, kind));
  const Status refused = open_fails(engine);
  CHECK(refused.code() == StatusCode::kCorruption);
  CHECK_THAT(refused.to_string(), ContainsSubstring("procedure " + std::to_string(id.value)));
}

TEST_CASE("a header that names no type is refused as corruption, not as a defect of the engine") {
  EngineWorld engine;
  engine.world.scripts["a"] = {};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.close();
  const std::string header = row(*engine.disk, id, RowKind::kHeader);
  std::string_view left = header;
  std::string engine_part(*read_frame(left));
  const std::string type = "\x22\x08test.Job";  // field 4
  const std::size_t at = engine_part.find(type);
  REQUIRE(at != std::string::npos);
  engine_part.erase(at, type.size());
  std::string without;
  append_frame(without, engine_part);
  without.append(left);
  put_row(*engine.disk, id, RowKind::kHeader, without);
  const Status refused = open_fails(engine);
  CHECK(refused.code() == StatusCode::kCorruption);
  CHECK_THAT(refused.to_string(), ContainsSubstring("header names no type"));
}

TEST_CASE("an open that is refused writes nothing, and ids go on after the ones issued before") {
  EngineWorld engine;
  engine.world.scripts["a"] = {};
  engine.open();
  const ProcedureId forgotten = engine.submit("a");
  engine.run();
  REQUIRE(engine.executor().acknowledge(forgotten).ok());
  const ProcedureId kept = engine.submit("a");
  engine.close();
  const auto watermark = engine.disk->get(Space::kEngine, kWatermarkKey);
  const std::string good = row(*engine.disk, kept, RowKind::kHeader);
  put_row(*engine.disk, kept, RowKind::kHeader, "damaged");

  CHECK(open_fails(engine).code() == StatusCode::kCorruption);

  CHECK(engine.disk->get(Space::kEngine, kWatermarkKey) == watermark);
  put_row(*engine.disk, kept, RowKind::kHeader, good);
  engine.open();
  CHECK(engine.submit("a").value > kept.value);
}

TEST_CASE("children whose root has no record are quarantined alone, and other trees run") {
  EngineWorld engine;  // behaviour.md, row 73
  engine.world.scripts["p"] = {.children = {"c", "c"}};
  engine.world.scripts["c"] = asks();
  engine.world.scripts["c"].locks = {};
  engine.world.scripts["other"] = {.steps = 5};
  engine.open();
  const ProcedureId root = engine.submit("p");
  const ProcedureId other = engine.submit("other");
  engine.executor().run_until_idle(4);
  engine.close();
  for (const RowKind kind : {RowKind::kHeader, RowKind::kState}) {
    engine.disk->erase(Space::kProcedure, procedure_key(root, kind));
  }
  engine.open();
  engine.run();

  CHECK(engine.result(other).status.ok());
  const auto listed = engine.executor().inspect().list();
  REQUIRE(listed.size() == 3);
  CHECK(listed[0].id == root);
  CHECK(listed[0].type == "(lost)");
  CHECK_THAT(listed[0].error.to_string(), ContainsSubstring("of which there is no record"));
  for (const ProcedureInfo& info : listed) {
    CHECK(info.quarantined);
    CHECK(info.root == root);
  }
}

TEST_CASE("a quarantined root that is bypassed leaves its rows where they are, damage included") {
  EngineWorld engine;
  const ProcedureId id = one_that_waits(engine);
  std::string header = row(*engine.disk, id, RowKind::kHeader);
  header.back() = static_cast<char>(header.back() ^ 1);
  put_row(*engine.disk, id, RowKind::kHeader, header);
  engine.open();
  REQUIRE(engine.describe(id).quarantined);
  REQUIRE(engine.executor().operate().bypass(id, kNote).to_string() == "OK");
  engine.run();

  CHECK(row(*engine.disk, id, RowKind::kHeader) == header);
  CHECK(engine.disk->rows(Space::kResult) == 0);
  for (int life = 0; life < 2; ++life) {
    CHECK(engine.result(id).bypassed);
    engine.open();
  }
  REQUIRE(engine.executor().acknowledge(id).ok());
  CHECK(engine.disk->rows(Space::kProcedure) == 0);
}

TEST_CASE("the members left of a tree whose root has no record are bypassed together") {
  const auto crash = GENERATE(Crash::kNone, Crash::kBefore, Crash::kAfter);
  const bool by_child = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"c", "d"}};
  engine.world.scripts["c"] = asks();
  engine.world.scripts["d"] = {.children = {"e"}};
  engine.world.scripts["e"] = asks();
  engine.world.scripts["e"].locks = {};
  engine.world.scripts["other"] = {.locks = kOrders};
  engine.open();
  const ProcedureId root = engine.submit("p", {.nonce = {1, 1}, .owner = "alice"});
  engine.run();
  REQUIRE(engine.executor().inspect().list().size() == 4);
  engine.close();
  for (const RowKind kind : {RowKind::kHeader, RowKind::kState}) {
    engine.disk->erase(Space::kProcedure, procedure_key(root, kind));
  }
  engine.open();
  const ProcedureId other = engine.submit("other");
  engine.run();
  CHECK(engine.world.journal.count("do other.1") == 0);
  CHECK(engine.submit("p", {.nonce = {1, 1}, .owner = "alice"}) == root);
  for (const auto verb :
       {RepairVerb::kRetryNow, RepairVerb::kSkipStep, RepairVerb::kFailAndRollBack}) {
    CHECK(engine.executor().operate().order(root, verb, kNote).code() ==
          StatusCode::kFailedPrecondition);
  }
  CHECK_FALSE(engine.executor().inspect().explain(root)->procedures.empty());
  CHECK(engine.executor().wait(root, std::chrono::milliseconds(0)).status().code() ==
        StatusCode::kDeadlineExceeded);
  CHECK_THAT(joined(engine.executor().operate().preview(root, RepairVerb::kBypass)),
             ContainsSubstring("is not known"));
  const ProcedureId child{root.value + 1};
  order(engine, by_child ? child : root, RepairVerb::kBypass, crash, root);
  engine.run();

  CHECK(engine.result(other).status.ok());
  CHECK(engine.executor().inspect().live_procedures() == 0);
  for (int life = 0; life < 2; ++life) {
    const ProcedureResult result = engine.result(root);
    CHECK(result.bypassed);
    CHECK(result.state == ProcedureState::kRolledBack);
    CHECK_THAT(result.status.to_string(), ContainsSubstring("bypassed by anna: ticket 7"));
    CHECK(engine.executor().operate().audit(root)->size() == 1);
    engine.crash_and_open();
    engine.run();
  }
  CHECK(engine.world.journal.count("undo p.1") == 0);
  CHECK(engine.executor().acknowledge(root).ok());
  CHECK(engine.executor().acknowledge(other).ok());
  CHECK_FALSE(engine.disk->get(Space::kNonce, nonce_key({1, 1})).has_value());
  for (const auto kind : {RowKind::kHeader, RowKind::kState, RowKind::kAudit}) {
    CHECK(rows_in_store(engine, kind) == 0);
  }
}

TEST_CASE("the nonce of a root without a record is deleted with the result of its bypass") {
  const bool restarts = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"c"}};
  engine.world.scripts["c"] = asks();
  engine.open();
  const ProcedureId root = engine.submit("p", {.nonce = {1, 1}});
  engine.run();
  engine.close();
  for (const RowKind kind : {RowKind::kHeader, RowKind::kState}) {
    engine.disk->erase(Space::kProcedure, procedure_key(root, kind));
  }
  engine.open();
  REQUIRE(engine.executor().operate().bypass(root, kNote).ok());
  engine.run();
  if (restarts) engine.open();
  const auto known = engine.executor().submit(Job(engine.world, "p"), {.nonce = {1, 1}});
  REQUIRE(known.ok());
  CHECK(known->replayed);
  CHECK(known->id == root);
  REQUIRE(engine.executor().acknowledge(root).ok());

  CHECK_FALSE(engine.disk->get(Space::kNonce, nonce_key({1, 1})).has_value());
  const auto anew = engine.executor().submit(Job(engine.world, "p"), {.nonce = {1, 1}});
  REQUIRE(anew.ok());
  CHECK_FALSE(anew->replayed);
}

TEST_CASE("the orders and messages of a root without a record stay, and are not written over") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"c"}};
  engine.world.scripts["c"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step == 3) return std::nullopt;
    return run.ctx.timed_out() ? Say::next(run.step + 1) : Say::wait_for(1h);
  }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId child{root.value + 1};
  REQUIRE(engine.executor().signal(root, "go").ok());
  const auto order_once = [&] {
    auto ordered =
        engine.executor().operate().order_once({5, 5}, child, RepairVerb::kRetryNow, kNote);
    REQUIRE(ordered.status().to_string() == "OK");
    return ordered->replayed;
  };
  CHECK_FALSE(order_once());
  engine.run();
  engine.close();
  for (const RowKind kind : {RowKind::kHeader, RowKind::kState}) {
    engine.disk->erase(Space::kProcedure, procedure_key(root, kind));
  }
  for (int life = 0; life < 2; ++life) {
    engine.open();
    engine.run();
    CHECK(order_once());
    CHECK(engine.executor().operate().audit(root)->size() == 1);
    const Status signalled = engine.executor().signal(root, "go");
    CHECK(signalled.code() == StatusCode::kFailedPrecondition);
    CHECK_THAT(signalled.to_string(), ContainsSubstring("its record is lost"));
    CHECK(rows_in_store(engine, RowKind::kInbox) == 1);
    CHECK(rows_in_store(engine, RowKind::kAudit) == 2);  // the order and its copy
  }
  REQUIRE(engine.executor().operate().bypass(root, kNote).to_string() == "OK");
  engine.run();
  CHECK(engine.store_failures.empty());
  CHECK(engine.executor().operate().audit(root)->size() == 2);
  CHECK(engine.executor().acknowledge(root).ok());
  engine.open();
  engine.run();
  for (const auto kind : {RowKind::kHeader, RowKind::kState, RowKind::kInbox, RowKind::kAudit}) {
    CHECK(rows_in_store(engine, kind) == 0);
  }
}

TEST_CASE("a store whose ids are nearly used up opens again and again, and then says so") {
  EngineWorld engine;
  engine.world.scripts["a"] = asks();
  Watermark watermark;
  watermark.next_id = kIdsMax - ProcedureIds::kBlock / 2;
  std::string row;
  encode_watermark(watermark, row);
  engine.disk->put(Space::kEngine, kWatermarkKey, row);
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  for (int life = 0; life < 3; ++life) {
    engine.crash_and_open();
    engine.run();
    CHECK_FALSE(engine.describe(id).quarantined);
    const auto refused = engine.executor().submit(Job(engine.world, "a"));
    CHECK(refused.status().code() == StatusCode::kUnavailable);
    CHECK_THAT(refused.status().to_string(), ContainsSubstring("are used up"));
  }
}

TEST_CASE("a second nonce of a root without a record names it as well") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"c"}};
  engine.world.scripts["c"] = asks();
  engine.open();
  const ProcedureId root = engine.submit("p", {.nonce = {1, 1}});
  engine.run();
  engine.close();
  for (const RowKind kind : {RowKind::kHeader, RowKind::kState}) {
    engine.disk->erase(Space::kProcedure, procedure_key(root, kind));
  }
  const auto nonce = engine.disk->get(Space::kNonce, nonce_key({1, 1}));
  REQUIRE(nonce.has_value());
  engine.disk->put(Space::kNonce, nonce_key({1, 2}), *nonce);
  engine.open();
  engine.run();

  for (const std::uint64_t value : {1, 2}) {
    const auto known = engine.executor().submit(Job(engine.world, "p"), {.nonce = {1, value}});
    REQUIRE(known.status().to_string() == "OK");
    CHECK(known->replayed);
    CHECK(known->id == root);
  }
}

TEST_CASE("a record at a step that this program does not have is quarantined") {
  EngineWorld engine;
  engine.world.scripts["a"] = {.steps = 5};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.executor().run_until_idle(3);

  ExecutorOptions options = engine.options();
  options.registry = ProcedureRegistry();
  options.registry.add<ScriptedJob<Shorter>>(engine.world);
  engine.open(std::move(options));
  engine.run();
  CHECK(engine.describe(id).quarantined);
  CHECK_THAT(engine.describe(id).error.to_string(), ContainsSubstring("step 4"));
}

TEST_CASE(
    "a record that contradicts itself or its tree is quarantined, whatever its checksum says") {
  EngineWorld engine;  // found by fuzzing
  engine.world.scripts["p"] = {.children = {"c", "c"}};
  engine.world.scripts["c"] = asks();
  engine.world.scripts["c"].locks = {};
  engine.world.scripts["other"] = {.steps = 5};
  engine.open();
  const ProcedureId root = engine.submit("p");
  const ProcedureId child{root.value + 1};
  const ProcedureId sibling{root.value + 2};
  engine.run();
  const ProcedureId other = engine.submit("other");
  engine.executor().run_until_idle(1);
  engine.close();

  SECTION("it runs, but no step is left") {
    change_state(*engine.disk, child, [](Execution&, Transition& next) { next.step = 0; });
  }
  SECTION("it waits for a deadline and has none") {
    change_state(*engine.disk, child, [](Execution&, Transition& next) {
      next.state = ProcedureState::kWaitingTimeout;
    });
  }
  SECTION("it may have to undo a step that its type does not have") {
    change_state(*engine.disk, child, [](Execution& execution, Transition&) {
      execution.record.undo.push_back({77, CommitSequence{1}});
    });
  }
  SECTION("it goes on although its children are not done") {
    change_state(*engine.disk, root,
                 [](Execution&, Transition& next) { next.state = ProcedureState::kRunnable; });
  }
  SECTION("its root is a child") { change_relatives(*engine.disk, sibling, child, child); }
  SECTION("it is a root and has a parent") {
    change_relatives(*engine.disk, sibling, child, sibling);
  }
  SECTION("its parent belongs to another tree") {
    change_relatives(*engine.disk, other, sibling, other);
  }
  SECTION("its parent is younger than it is") {
    change_relatives(*engine.disk, child, sibling, root);
  }
  const std::size_t rows = engine.disk->rows();
  engine.open();
  engine.run();

  std::size_t quarantined = 0;
  for (const ProcedureInfo& info : engine.executor().inspect().list())
    quarantined += info.quarantined;
  CHECK(quarantined >= 1);
  CHECK(engine.disk->rows() == rows);  // a tree that ends swaps two rows for its result and a date
  CHECK(std::any_of(engine.log_lines.begin(), engine.log_lines.end(), [](const std::string& line) {
    return line.find("is quarantined with its locks") != std::string::npos;
  }));
}

TEST_CASE("a lock that cannot be restored is reported, not taken twice") {
  EngineWorld engine;  // X10
  engine.world.scripts["a"] = asks();
  engine.open();
  const ProcedureId first = engine.submit("a");
  engine.run();

  EngineWorld elsewhere;  // a second holder of the same table, with the next id
  elsewhere.world.scripts["a"] = asks();
  elsewhere.world.scripts["nothing"] = {.steps = 1};
  elsewhere.open();
  elsewhere.submit("nothing");
  elsewhere.run();
  const ProcedureId second = elsewhere.submit("a");
  elsewhere.run();
  REQUIRE(second != first);
  engine.close();
  elsewhere.close();
  for (const RowKind kind : {RowKind::kHeader, RowKind::kState}) {
    put_row(*engine.disk, second, kind, row(*elsewhere.disk, second, kind));
  }
  engine.open();
  engine.run();

  CHECK_FALSE(engine.describe(first).quarantined);
  CHECK(engine.describe(second).quarantined);
  CHECK_THAT(engine.describe(second).error.to_string(), ContainsSubstring("locks"));
  while (engine.world.answer_one("go on")) engine.run();
  CHECK(engine.result(first).status.ok());
}

TEST_CASE("a tree that lost one of its middle members is frozen whole") {
  EngineWorld engine;
  engine.world.scripts["leaf"] = {
      .steps = 1, .run = [](JobRun&) -> std::optional<Outcome> { return Say::wait_for(1h); }};
  engine.world.scripts["middle"] = {.children = {"leaf"}};
  engine.world.scripts["root"] = {.children = {"middle"}};
  engine.open();
  const ProcedureId root = engine.submit("root");
  engine.run();
  ProcedureId middle;
  for (const ProcedureInfo& info : engine.executor().inspect().list()) {
    if (info.parent == root) middle = info.id;
  }
  REQUIRE(middle);
  engine.close();
  for (const RowKind kind : {RowKind::kHeader, RowKind::kState}) {
    REQUIRE(engine.disk->erase(Space::kProcedure, procedure_key(middle, kind)));
  }

  engine.open();
  engine.advance(2h);

  REQUIRE(engine.executor().inspect().list().size() == 2);
  for (const ProcedureInfo& info : engine.executor().inspect().list()) CHECK(info.quarantined);
}

TEST_CASE("a message to a quarantined procedure overwrites none of the rows that it keeps") {
  struct Kept {
    std::string what;
    std::uint64_t number;
    std::function<std::string()> row;
  };
  const auto intact = [](std::uint64_t number) {
    InboxMessage message;
    message.kind = InboxMessage::Kind::kSignal;
    message.number = number;
    message.name = "x";
    std::string bytes;
    encode_message(message, bytes);
    return bytes;
  };
  const auto unknown = [] {
    std::string bytes;
    FrameWriter frame(bytes);
    append_varint_field(bytes, 1, 77);  // its kind
    append_varint_field(bytes, 2, 1);   // its number
    frame.finish();
    return bytes;
  };
  const auto kept = GENERATE_REF(
      Kept{"damaged", 1, [] { return std::string("damaged"); }}, Kept{"unknown kind", 1, unknown},
      Kept{"another number", 1, [&] { return intact(2); }},
      Kept{"number 0", 0, [&] { return intact(0); }},
      Kept{"last number", UINT64_MAX, [&] { return intact(UINT64_MAX); }},
      Kept{"last but one", UINT64_MAX - 1, [&] { return intact(UINT64_MAX - 1); }});
  CAPTURE(kept.what);
  EngineWorld engine;
  const ProcedureId id = one_that_waits(engine);
  engine.disk->put(Space::kProcedure, inbox_key(id, kept.number), kept.row());
  for (int life = 0; life < 2; ++life) {
    ProcedureExecutor& executor = engine.open();
    engine.run();
    CHECK(engine.describe(id).quarantined);
    CHECK_THAT(engine.describe(id).error.to_string(), ContainsSubstring("message "));
    CHECK(executor.signal(id, "go", "first").ok());
    CHECK(executor.signal(id, "go", "second").ok());
    CHECK(engine.store_failures.empty());
    CHECK(engine.disk->get(Space::kProcedure, inbox_key(id, kept.number)) == kept.row());
  }
  CHECK(rows_in_store(engine, RowKind::kInbox) == 5);
}

TEST_CASE("an order with a number that none has quarantines its tree") {
  EngineWorld engine;
  const ProcedureId id = one_that_waits(engine);
  engine.disk->put(Space::kProcedure, audit_key(id, UINT64_MAX), "damaged");
  engine.open();
  engine.run();
  CHECK(engine.describe(id).quarantined);
  CHECK(engine.executor().signal(id, "go").ok());
  CHECK(engine.executor().operate().bypass(id, kNote).ok());
  engine.run();
  CHECK(engine.result(id).bypassed);
}

}  // namespace pv2::testing::quarantine_test
