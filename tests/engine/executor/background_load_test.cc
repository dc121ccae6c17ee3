// SPDX-License-Identifier: Apache-2.0
//
// Load::kInBackground. The store of these tests holds the scan of the live procedures back until a
// test opens its gate. Until then the executor is loading: it accepts submissions, and other calls
// wait.

#include <pv2/base/latch.h>
#include <pv2/base/thread.h>
#include <pv2/store/noop_procedure_store.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "records/row_keys.h"
#include "support/engine_world.h"
#include "support/held_scan.h"

namespace pv2::testing::background_load_test {
namespace {

using namespace std::chrono_literals;

const auto kOrders = LockSet().table("shop", "orders", LockMode::kExclusive);

// A job that asks in its step 1 and goes on when it is answered.
JobScript asks(LockSet locks = {}) {
  return {.run = [](JobRun& run) -> std::optional<Outcome> {
            if (run.step != 1) return usual();
            const std::string* const answer = run.ctx.await<std::string>(
                [&](Completion<std::string> completion) { run.world.ask(std::move(completion)); });
            return answer == nullptr ? std::optional(Say::wait()) : usual();
          },
          .locks = std::move(locks)};
}

// One life without threads leaves something in the store; in the next it is loaded in the
// background.
struct Lives {
  EngineWorld first;
  HeldScan::Gate gate;
  std::unique_ptr<ProcedureExecutor> executor;

  Lives() {
    first.world.scripts["old"] = asks();
    first.world.scripts["holder"] = asks(kOrders);
    first.world.scripts["new"] = {.steps = 2};
    first.world.scripts["wants"] = {.steps = 2, .locks = kOrders, .priority = Priority::kHigh};
    first.world.scripts["short"] = {.steps = 1};
    first.open();
  }
  ~Lives() {
    if (!gate.passes->has_value()) gate.open();  // else the executor would wait for its scan
  }

  ExecutorOptions options() {
    ExecutorOptions options = first.options();
    options.store = std::make_unique<HeldScan>(
        memory(first.disk, {.mode = MemoryStoreOptions::Mode::kThread}), gate);
    options.workers = 2;
    options.clock = nullptr;
    options.load = Load::kInBackground;
    options.log = {};
    return options;
  }
  ProcedureExecutor& begin_next() { return begin_next(options()); }
  ProcedureExecutor& begin_next(ExecutorOptions options) {
    first.close();
    while (first.world.answer_one("nobody hears of it")) {
    }
    executor = open_executor(std::move(options));
    executor->start();
    return *executor;
  }
  // Everything in the store ends. Returns how many procedures there were.
  std::size_t end_in_third_life() {
    executor.reset();
    first.world.scripts["old"] = first.world.scripts["holder"] = {.steps = 1};
    const std::size_t live = first.open().inspect().live_procedures();
    first.run_to_the_end();
    return live;
  }
};

template <class T>
std::function<void(T)> into(const std::shared_ptr<Latch<T>>& latch) {
  return [latch](T value) { latch->set(std::move(value)); };
}
template <class T>
T answer(const std::shared_ptr<Latch<T>>& latch) {
  latch->wait();
  return *latch->value;
}
using Told = Latch<Status>;

}  // namespace

TEST_CASE("while the store is being loaded a submission is durable, and it runs afterwards") {
  Lives lives;
  const ProcedureId old = lives.first.submit("old");
  ProcedureExecutor& executor = lives.begin_next();
  const auto submitted = executor.submit(Job(lives.first.world, "new"));
  REQUIRE(submitted.status().to_string() == "OK");
  CHECK(old < submitted->id);
  CHECK(lives.first.world.journal.count("do new.1") == 0);
  SECTION("in this life") {
    lives.gate.open();
    CHECK(executor.wait_until_loaded().ok());
    CHECK(executor.wait(submitted->id)->status.ok());
    while (!lives.first.world.answer_one("now")) std::this_thread::yield();
    CHECK(executor.wait(old)->status.ok());
    CHECK(lives.first.world.journal.count("do new.1") == 1);
  }
  SECTION("in the next life, if this one ends before") {
    lives.gate.open();
    CHECK(lives.end_in_third_life() == 2);
    CHECK(lives.first.result(submitted->id).status.ok());
  }
}

TEST_CASE("a nonce of a procedure that is not loaded yet is known, and leads to its result") {
  Lives lives;
  const SubmitOptions once{.nonce = {1, 7}};
  const SubmitOptions twice{.nonce = {1, 8}};
  const ProcedureId old = lives.first.submit("old", once);
  const ProcedureId ended = lives.first.submit("short", twice);
  lives.first.run();
  ProcedureExecutor& executor = lives.begin_next();
  World& world = lives.first.world;

  const auto again = executor.submit(Job(world, "old"), once);
  REQUIRE(again.status().to_string() == "OK");
  CHECK(again->id == old);
  CHECK(again->replayed);
  CHECK(executor.submit(Job(world, "short"), twice)->id == ended);
  CHECK(executor.find(once.nonce).value() == old);
  CHECK(executor.submit(Job(world, "new"), once).status().code() == StatusCode::kKeyReused);
  CHECK(executor.find({1, 9}).status().code() == StatusCode::kNotFound);

  const auto result = std::make_shared<Latch<Result<ProcedureResult>>>();
  executor.async().execute(Job(world, "old"), once, into(result));
  CHECK_FALSE(result->has_value());
  lives.gate.open();
  while (!world.answer_one("now")) std::this_thread::yield();
  CHECK(answer(result)->id == old);
  CHECK(executor.wait(ended)->status.ok());
}

TEST_CASE("who held a lock before holds it when the store is loaded, whoever came meanwhile") {
  Lives lives;
  const ProcedureId holder = lives.first.submit("holder");
  lives.first.run();
  World& world = lives.first.world;
  ProcedureExecutor& executor = lives.begin_next();
  const auto wants = executor.submit(Job(world, "wants"));
  REQUIRE(wants.ok());
  lives.gate.open();
  while (world.asked() == 0) std::this_thread::yield();
  REQUIRE(executor.wait_until_loaded().ok());
  CHECK(executor.inspect().explain(wants->id)->procedures[0].reasons[0].kind ==
        WaitReason::Kind::kLock);
  CHECK(world.answer_one("now"));
  CHECK(executor.wait(wants->id)->status.ok());
  CHECK(executor.wait(holder)->status.ok());
  const auto journal = lives.first.journal();
  CHECK(std::find(journal.begin(), journal.end(), "do holder.3") <
        std::find(journal.begin(), journal.end(), "do wants.1"));
}

TEST_CASE("calls about procedures that are not loaded yet are answered when they are") {
  Lives lives;
  const ProcedureId old = lives.first.submit("old");
  const ProcedureId aborted = lives.first.submit("old");
  const ProcedureId ended = lives.first.submit("short");
  lives.first.run();
  ProcedureExecutor& executor = lives.begin_next();
  const auto async = executor.async();

  const auto result = std::make_shared<Latch<Result<ProcedureResult>>>();
  const auto abort = std::make_shared<Told>();
  const auto signal = std::make_shared<Told>();
  const auto acknowledged = std::make_shared<Told>();
  const auto order = std::make_shared<Told>();
  const auto never = std::make_shared<Told>();
  async.wait(old, into(result));
  async.abort(aborted, {}, into(abort));
  async.signal(old, "news", "", into(signal));
  async.acknowledge(ended, into(acknowledged));
  executor.operate().order(old, RepairVerb::kRetryNow, {.who = "anna", .why = "ticket 7"},
                           into(order));
  async.acknowledge(ProcedureId{999'999'999}, into(never));
  CHECK(executor.wait(old, 0ms).status().code() == StatusCode::kDeadlineExceeded);
  bool is_told = false;
  const WaitTicket ticket = async.wait(old, [&](const auto&) { is_told = true; });
  CHECK(async.withdraw(ticket));
  CHECK_FALSE(async.withdraw(ticket));
  for (const auto& each : {abort, signal, acknowledged, order, never}) {
    CHECK_FALSE(each->has_value());
  }
  CHECK_FALSE(result->has_value());

  lives.gate.open();
  CHECK(answer(abort).to_string() == "OK");
  CHECK(answer(signal).to_string() == "OK");
  CHECK(answer(acknowledged).to_string() == "OK");
  CHECK_FALSE(answer(order).ok());  // it is not parked
  CHECK(answer(never).code() == StatusCode::kNotFound);
  CHECK(executor.wait(aborted)->status.code() == StatusCode::kAborted);
  CHECK(executor.wait(ended).status().code() == StatusCode::kExpired);
  while (!result->has_value()) {
    lives.first.world.answer_one("now");
    std::this_thread::yield();
  }
  CHECK(answer(result)->status.ok());
  CHECK_FALSE(is_told);
}

TEST_CASE("calls that block wait until the store is loaded, and see all of it") {
  Lives lives;
  const ProcedureId old = lives.first.submit("old");
  ProcedureExecutor& executor = lives.begin_next();
  const auto submitted = executor.submit(Job(lives.first.world, "new"));
  std::size_t live = 0;
  std::vector<Status> answers;
  std::thread host([&] {
    live = executor.inspect().live_procedures();
    answers.push_back(executor.inspect().describe(old).status());
    answers.push_back(executor.operate().audit(old).status());
    answers.push_back(executor.operate().set_limit({ResourceClass::kTable, "shop.orders"}, 2));
    answers.push_back(executor.operate().preview(old, RepairVerb::kRetryNow).status());
  });
  lives.gate.open();
  host.join();
  CHECK(live >= 1);
  REQUIRE(answers.size() == 4);
  for (std::size_t i = 0; i < 3; ++i) CHECK(answers[i].to_string() == "OK");
  CHECK_FALSE(answers[3].ok());  // it is not parked
  CHECK(executor.wait(submitted->id)->status.ok());
}

TEST_CASE("an order with a nonce, given while the store is being loaded, is carried out once") {
  Lives lives;
  lives.first.world.scripts["fails"] = {
      .run = [](JobRun& run) { return run.step == 2 ? std::optional(Say::fail("no")) : usual(); },
      .undo = [](JobRun&) { return std::optional(Say::fail("stuck")); }};
  const ProcedureId parked = lives.first.submit("fails");
  lives.first.run();
  ProcedureExecutor& executor = lives.begin_next();
  const RepairNote note{.who = "anna", .why = "ticket 7"};
  const auto first = std::make_shared<Latch<Result<Ordered>>>();
  const auto copy = std::make_shared<Latch<Result<Ordered>>>();
  const auto other = std::make_shared<Latch<Result<Ordered>>>();
  const OperatorConsole console = executor.operate();
  console.order_once({5, 1}, parked, RepairVerb::kBypass, note, into(first));
  console.order_once({5, 1}, parked, RepairVerb::kBypass, note, into(copy));
  console.order_once({5, 1}, parked, RepairVerb::kSkipStep, note, into(other));
  CHECK_FALSE(other->has_value());
  lives.gate.open();
  CHECK(answer(first).status().to_string() == "OK");
  CHECK(answer(copy)->replayed);
  CHECK(answer(other).status().code() == StatusCode::kKeyReused);
}

TEST_CASE("a stop while the store is being loaded answers everybody, and loses nothing") {
  Lives lives;
  const ProcedureId old = lives.first.submit("old");
  ProcedureExecutor& executor = lives.begin_next();
  const auto submitted = executor.submit(Job(lives.first.world, "new"));
  REQUIRE(submitted.ok());
  const auto async = executor.async();
  const auto result = std::make_shared<Latch<Result<ProcedureResult>>>();
  const auto own = std::make_shared<Latch<Result<ProcedureResult>>>();
  const auto abort = std::make_shared<Told>();
  async.wait(old, into(result));
  async.wait(submitted->id, into(own));
  async.abort(old, {}, into(abort));
  Status acknowledged;
  std::thread host([&] { acknowledged = executor.acknowledge(old); });
  const Status stopped = executor.stop(0ms);
  CHECK(stopped.code() == StatusCode::kDeadlineExceeded);
  CHECK_THAT(stopped.to_string(), ContainsSubstring("memory store is still being loaded"));
  // Before the scan has ended.
  CHECK(answer(result).status().code() == StatusCode::kStopping);
  CHECK(answer(own).status().code() == StatusCode::kStopping);
  CHECK(executor.submit(Job(lives.first.world, "new")).status().code() == StatusCode::kStopping);
  CHECK(answer(abort).code() == StatusCode::kStopping);
  CHECK(executor.wait_until_loaded().code() == StatusCode::kStopping);
  host.join();
  CHECK(acknowledged.code() == StatusCode::kStopping);
  lives.gate.open();
  executor.stop();
  CHECK(executor.wait(old).status().code() == StatusCode::kStopping);
  CHECK(lives.end_in_third_life() == 2);
  CHECK(lives.first.world.journal.count("do new.1") == 1);
}

TEST_CASE("a store that cannot be loaded in the background ends the run, and says why") {
  Lives lives;
  const ProcedureId old = lives.first.submit("old");
  const auto failure = std::make_shared<Told>();
  ExecutorOptions options = lives.options();
  options.on_store_failure = into(failure);
  ProcedureExecutor& executor = lives.begin_next(std::move(options));
  const auto submitted = executor.submit(Job(lives.first.world, "new"));
  REQUIRE(submitted.ok());
  const auto result = std::make_shared<Latch<Result<ProcedureResult>>>();
  const auto own = std::make_shared<Latch<Result<ProcedureResult>>>();
  const auto abort = std::make_shared<Told>();
  executor.async().wait(old, into(result));
  executor.async().wait(submitted->id, into(own));
  executor.async().abort(old, {}, into(abort));
  lives.gate.fail();

  const Status loaded = executor.wait_until_loaded();
  CHECK(loaded.code() == StatusCode::kIoError);
  CHECK_THAT(loaded.to_string(), ContainsSubstring("loading") && ContainsSubstring("disk is gone"));
  CHECK(answer(failure).to_string() == loaded.to_string());
  CHECK(executor.health().to_string() == loaded.to_string());
  CHECK(answer(result).status().to_string() == loaded.to_string());
  CHECK(answer(own).status().to_string() == loaded.to_string());
  CHECK(answer(abort).to_string() == loaded.to_string());
  CHECK(executor.wait(old).status().to_string() == loaded.to_string());
  CHECK(executor.signal(old, "news").to_string() == loaded.to_string());
  CHECK(executor.submit(Job(lives.first.world, "new")).status().to_string() == loaded.to_string());
  CHECK(executor.inspect().describe(old).status().to_string() == loaded.to_string());
  CHECK(executor.inspect().explain(old).status().to_string() == loaded.to_string());
  CHECK(executor.inspect().history(old).ok());  // that is in the store
  CHECK(lives.first.world.journal.count("do new.1") == 0);
  executor.stop();
  CHECK(lives.end_in_third_life() == 2);
}

TEST_CASE("callers that submit, wait and abort while thousands are loaded lose nothing") {
  Lives lives;
  World& world = lives.first.world;
  constexpr std::uint64_t kOld = 4000;
  constexpr std::uint64_t kNew = 200;
  constexpr std::uint64_t kThreads = 4;
  lives.first.max_live_procedures = 10 * kOld;
  lives.first.open();
  world.scripts["long"] = {.steps = 2, .locks = kOrders};
  std::vector<ProcedureId> old;
  for (std::uint64_t i = 1; i <= kOld; ++i) {
    old.push_back(lives.first.submit(i % 50 == 0 ? "long" : "short", {.nonce = {1, i}}));
  }
  lives.gate.open();
  ProcedureExecutor& executor = lives.begin_next();
  std::vector<std::thread> hosts;
  std::atomic<std::uint64_t> aborted = 0;
  std::atomic<std::uint64_t> surprises = 0;
  const auto expect = [&](bool is_so) { surprises += is_so ? 0 : 1; };
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    hosts.emplace_back([&, t] {
      for (std::uint64_t i = 1; i <= kNew; ++i) {
        const std::uint64_t known = (t * kNew + i) * (kOld / kThreads / kNew);
        const auto again =
            executor.submit(Job(world, known % 50 == 0 ? "long" : "short"), {.nonce = {1, known}});
        expect(again.ok() && again->replayed && again->id == old[known - 1]);
        const auto one =
            executor.submit(Job(world, i % 8 == 0 ? "wants" : "new"), {.nonce = {2 + t, i}});
        expect(one.ok() && !one->replayed);
        if (i % 20 != 0) continue;
        if (executor.abort(old[known - 1]).ok()) aborted.fetch_add(1);
        expect(executor.wait(old[known - 1]).ok());
        expect(executor.wait(one->id)->status.ok());
      }
    });
  }
  for (std::thread& host : hosts) host.join();
  CHECK(surprises == 0);
  for (const ProcedureId id : old) CHECK(executor.wait(id).ok());
  while (executor.inspect().live_procedures() != 0) std::this_thread::yield();
  // What was aborted may have had its effect before.
  const std::size_t began = world.journal.count("do short.1") + world.journal.count("do long.1");
  CHECK(began <= kOld);
  CHECK(began + aborted >= kOld);
  CHECK(world.journal.count("do wants.2") == kThreads * kNew / 8);
  CHECK(world.journal.count("do new.2") == kThreads * (kNew - kNew / 8));
}

TEST_CASE("a record with an id that would be issued next has everything loaded first") {
  Lives lives;
  const ProcedureId old = lives.first.submit("short");
  const ProcedureId next{old.value + static_cast<std::uint64_t>(GENERATE(1, 2, 900'000))};
  lives.first.close();
  const auto header =
      lives.first.disk->get(Space::kProcedure, procedure_key(old, RowKind::kHeader));
  REQUIRE(header);
  lives.first.disk->put(Space::kProcedure, procedure_key(next, RowKind::kHeader), *header);
  lives.gate.open();
  const auto opened = ProcedureExecutor::open(lives.options());
  CHECK(opened.status().code() == StatusCode::kCorruption);  // as without a background
}

TEST_CASE("a record with an id that is far from being issued is found in the background") {
  Lives lives;
  const ProcedureId old = lives.first.submit("old");
  const ProcedureId far{old.value + 50'000'000};
  lives.first.close();
  lives.first.disk->put(Space::kProcedure, procedure_key(far, RowKind::kHeader), "anything");
  ProcedureExecutor& executor = lives.begin_next();
  lives.gate.open();
  const Status loaded = executor.wait_until_loaded();
  CHECK(loaded.code() == StatusCode::kCorruption);
  CHECK_THAT(loaded.to_string(), ContainsSubstring(std::to_string(far.value)) &&
                                     ContainsSubstring("kBeforeOpenReturns"));
}

TEST_CASE("two live procedures with one nonce are found, and the older one does not run") {
  Lives lives;
  const SubmitOptions once{.nonce = {1, 7}};
  const ProcedureId old = lives.first.submit("short", once);
  lives.first.close();
  REQUIRE(lives.first.disk->erase(Space::kNonce, nonce_key(once.nonce)));  // damage
  ProcedureExecutor& executor = lives.begin_next();
  const auto again = executor.submit(Job(lives.first.world, "short"), once);
  REQUIRE(again.ok());
  CHECK(again->id != old);
  lives.gate.open();
  REQUIRE(executor.wait_until_loaded().ok());
  CHECK(executor.wait(again->id)->status.ok());
  CHECK(executor.inspect().describe(old)->quarantined);
  CHECK(lives.first.world.journal.count("do short.1") == 1);
}

TEST_CASE("calls that block and change something are answered, though nothing else is written") {
  Lives lives;
  const ProcedureId ended = lives.first.submit("short");
  lives.first.run();
  const ProcedureId old = lives.first.submit("old");
  lives.first.close();
  lives.executor = open_executor(lives.options());  // never started
  Status acknowledged = Status(StatusCode::kInternal, "not answered");
  Status aborted = acknowledged;
  std::thread one([&] { acknowledged = lives.executor->acknowledge(ended); });
  std::thread other([&] { aborted = lives.executor->abort(old); });
  lives.gate.open();
  one.join();
  other.join();
  CHECK(acknowledged.to_string() == "OK");
  CHECK(aborted.to_string() == "OK");
}

TEST_CASE("all who have waited since before the store was loaded get the result") {
  Lives lives;
  constexpr int kWaiters = 600;
  const ProcedureId old = lives.first.submit("short");
  const ProcedureId ended = lives.first.submit("short");
  lives.first.run();
  const ProcedureId live = lives.first.submit("short");
  ProcedureExecutor& executor = lives.begin_next();
  std::atomic<int> told = 0;
  std::atomic<int> results = 0;
  const auto note = [&](const Result<ProcedureResult>& result) {
    if (result.ok()) results.fetch_add(1);
    told.fetch_add(1);
  };
  for (int i = 0; i < kWaiters; ++i) {
    for (const ProcedureId id : {ended, live}) executor.async().wait(id, note);
  }
  // Whoever comes first takes the result away.
  executor.async().wait(live, [&](const auto&) { executor.async().acknowledge(live, {}); });
  executor.async().acknowledge(ended, {});
  lives.gate.open();
  while (told.load() != 2 * kWaiters) std::this_thread::yield();
  CHECK(results.load() == 2 * kWaiters);
  CHECK(executor.wait(old)->status.ok());
}

TEST_CASE("signals of one caller arrive in the order in which it sent them, loaded or not") {
  Lives lives;
  lives.first.world.scripts["hears"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 1) return usual();
    std::string heard;
    while (const std::string* each = run.ctx.signal("n")) heard += *each + " ";
    if (!heard.ends_with("end ")) return Say::wait();
    run.world.journal.note(heard);
    return usual();
  }};
  const ProcedureId hears = lives.first.submit("hears");
  ExecutorOptions options = lives.options();
  options.max_signals = SIZE_MAX;
  options.max_signal_bytes = std::size_t{64} << 20;
  ProcedureExecutor& executor = lives.begin_next(std::move(options));
  std::string sent;
  const auto send = [&](const std::string& what) {
    executor.async().signal(hears, "n", what, [](const Status&) {});
    sent += what + " ";
  };
  int number = 0;
  while (number < 500) send(std::to_string(++number));
  lives.gate.open();
  while (executor.is_loading()) send(std::to_string(++number));
  for (int i = 0; i < 300; ++i) send(std::to_string(++number));  // those from before are being made
  send("end");
  CHECK(executor.wait(hears)->status.ok());
  CHECK(lives.first.world.journal.count(sent) == 1);
}

TEST_CASE("trees that were being undone are undone when the store is loaded") {
  Lives lives;
  World& world = lives.first.world;
  std::atomic<bool> may_undo = false;
  constexpr int kTrees = 200;
  const auto undo = [&may_undo](JobRun&) -> std::optional<Outcome> {
    if (!may_undo) return Say::failed(Status(StatusCode::kUnavailable, "not yet"));
    return usual();
  };
  world.scripts["child"] = {.steps = 2, .undo = undo};
  world.scripts["parent"] = {
      .children = {"child", "child"},
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
      .undo = undo};
  std::vector<ProcedureId> parents;
  for (int i = 0; i < kTrees; ++i) parents.push_back(lives.first.submit("parent"));
  lives.first.run();
  ProcedureExecutor& executor = lives.begin_next();
  std::vector<ProcedureId> others;
  for (int i = 0; i < kTrees; ++i) {
    if (i == kTrees / 2) lives.gate.open();
    others.push_back(executor.submit(Job(world, "new"))->id);
  }
  may_undo = true;
  for (const ProcedureId id : others) CHECK(executor.wait(id)->status.ok());
  REQUIRE(executor.wait_until_loaded().ok());
  for (const ProcedureId id : parents) {
    (void)executor.operate().order(id, RepairVerb::kRetryNow, {.who = "anna", .why = "ticket 7"});
    CHECK(executor.wait(id)->status.code() == StatusCode::kFailedPrecondition);
  }
  CHECK(world.journal.count("undo parent.1") == kTrees);
  CHECK(world.journal.count("undo child.1") == 2 * kTrees);
}

TEST_CASE("a callback on a thread of the engine is not held up by inspect()") {
  Lives lives;
  lives.first.submit("old");
  ProcedureExecutor& executor = lives.begin_next();
  const auto seen = std::make_shared<Latch<std::size_t>>();
  executor.async(CallbackThread::kEngine)
      .submit(Job(lives.first.world, "new"), {}, [&executor, seen](const Result<Submitted>&) {
        seen->set(executor.inspect().live_procedures());
      });
  CHECK(answer(seen) == 1);  // the old one is not loaded yet
  CHECK(executor.is_loading());
  lives.gate.open();
  CHECK(executor.wait_until_loaded().ok());
  CHECK_FALSE(executor.is_loading());
}

TEST_CASE("with nothing to load, or without records, open() has loaded everything") {
  World world;
  world.scripts["new"] = {.steps = 2};
  const auto open = [&](std::unique_ptr<ProcedureStore> store) {
    ExecutorOptions options;
    HeldScan::Gate gate;
    gate.open();
    options.store = std::move(store);
    options.load = Load::kInBackground;
    options.log = {};
    add_job_types(options.registry, world);
    auto executor = open_executor(std::move(options));
    CHECK(executor->wait_until_loaded().ok());
    executor->start();
    CHECK(executor->wait(executor->submit(Job(world, "new"))->id)->status.ok());
  };
  open(memory(std::make_shared<MemoryDisk>(), {.mode = MemoryStoreOptions::Mode::kThread}));
  open(noop());
}

TEST_CASE("an executor without workers cannot load in the background") {
  EngineWorld engine;
  ExecutorOptions options = engine.options();
  options.load = Load::kInBackground;
  const auto opened = ProcedureExecutor::open(std::move(options));
  CHECK(opened.status().code() == StatusCode::kInvalidArgument);
  CHECK_THAT(opened.status().to_string(), ContainsSubstring("kBeforeOpenReturns"));
}

TEST_CASE("without a thread that could load, open() fails and the store is as it was") {
  Lives lives;
  lives.first.submit("old");
  lives.first.close();
  lives.gate.open();
  std::size_t enough = 0;
  for (;; ++enough) {
    limit_new_threads_for_tests(enough);
    auto opened = ProcedureExecutor::open(lives.options());
    limit_new_threads_for_tests(std::nullopt);
    if (opened.ok()) break;
    CHECK(opened.status().code() == StatusCode::kResourceExhausted);
  }
  // As without a background (no_threads_left_test), and the one that loads.
  CHECK(enough == 11);
  CHECK(lives.end_in_third_life() == 1);
}

TEST_CASE("a procedure that is not loaded to the end has not finished: an explanation says so") {
  Lives lives;
  lives.first.submit("old");
  ProcedureExecutor& executor = lives.begin_next();
  const auto seen = std::make_shared<Latch<std::string>>();
  executor.async(CallbackThread::kEngine)
      .submit(Job(lives.first.world, "new"), {},
              [&executor, seen](const Result<Submitted>& submitted) {
                seen->set(to_string(executor.inspect().explain(submitted->id).value()));
              });
  CHECK_THAT(answer(seen), ContainsSubstring("is still being loaded"));
  lives.gate.open();
  CHECK(executor.wait_until_loaded().ok());
}

}  // namespace pv2::testing::background_load_test
