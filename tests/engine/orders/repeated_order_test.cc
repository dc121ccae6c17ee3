// SPDX-License-Identifier: Apache-2.0
//
// Orders with a nonce. An order whose answer is lost is given again under its nonce, after a crash
// at any commit, while the first copy is on its way, and after the end of the tree: it is carried
// out once. Another order under that nonce is refused.

#include <pv2/store/noop_procedure_store.h>

#include <array>
#include <atomic>
#include <thread>

#include "orders/order_nonces.h"
#include "support/repair_orders.h"
#include "support/wrapped_store.h"

namespace pv2::testing::repeated_order_test {
namespace {

using namespace std::chrono_literals;

constexpr Nonce kNonce{7, 9};
using Heard = std::optional<Result<Ordered>>;

std::string text_of(const Result<Ordered>& answer) {
  if (!answer.ok()) return answer.status().to_string();
  return answer->replayed ? "replayed" : "OK";
}
std::string text_of(const Heard& heard) { return heard ? text_of(*heard) : "not answered"; }

Result<Ordered> order_once(EngineWorld& engine, ProcedureId id, RepairVerb verb,
                           const Nonce& nonce = kNonce, RepairNote note = kNote) {
  return engine.executor().operate().order_once(nonce, id, verb, std::move(note));
}
void order_once(EngineWorld& engine, ProcedureId id, RepairVerb verb, Heard& heard,
                const Nonce& nonce = kNonce) {
  engine.executor().operate().order_once(nonce, id, verb, kNote,
                                         [&heard](const Result<Ordered>& got) { heard = got; });
}

// Makes durable what is committed, one request at a time or all at once, as often as it is allowed.
class GatedStore final : public WrappedStore {
 public:
  using WrappedStore::WrappedStore;
  CommitAnswer commit(CommitRequest& request) override {
    waiting_.push_back(request);
    return CommitAnswer::kQueued;
  }
  CommitAnswer commit_all(CommitList& requests) override {
    waiting_.splice_back(std::move(requests));
    return CommitAnswer::kQueued;
  }
  CommitAnswer queue_all(CommitList& requests) override { return commit_all(requests); }
  bool pump() override {
    bool did = false;
    while (syncs > 0 && !waiting_.empty()) {
      --syncs;
      did = true;
      do WrappedStore::commit(*waiting_.pop_front());
      while (all_at_once && !waiting_.empty());
      WrappedStore::pump();
    }
    return did;
  }
  void close() noexcept override {
    while (!waiting_.empty()) WrappedStore::commit(*waiting_.pop_front());
    WrappedStore::close();
  }

  std::size_t syncs = SIZE_MAX;  // that are allowed
  bool all_at_once = false;

 private:
  CommitList waiting_;
};

// Calls `then` once, while somebody reads rows; reads may fail.
class InterruptedReads final : public WrappedStore {
 public:
  using WrappedStore::WrappedStore;
  Status scan(Space space, std::string_view prefix, const RowVisitor& visit) override {
    if (const auto act = std::exchange(then, nullptr)) act();
    if (fails) return {StatusCode::kIoError, "the disk does not answer"};
    return WrappedStore::scan(space, prefix, visit);
  }
  std::function<void()> then;
  bool fails = false;
};

// Each undo parks, so after each skip_step it parks again.
JobScript parks_at_each_undo() {
  JobScript script = stuck_everywhere();
  script.steps = 4;
  script.locks = LockSet().table("shop", "orders", LockMode::kExclusive);
  return script;
}

// A job of that kind, which is parked at its first undo.
ProcedureId open_with_parked(EngineWorld& engine) {
  engine.world.scripts["a"] = parks_at_each_undo();
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  REQUIRE(engine.describe(id).parked);
  return id;
}

std::size_t orders_in(EngineWorld& engine, ProcedureId id) {
  const auto audit = engine.executor().operate().audit(id);
  REQUIRE(audit.status().to_string() == "OK");
  return audit->size();
}

}  // namespace

TEST_CASE("a repeated order is not carried out again, and says so") {
  const auto verb = GENERATE(RepairVerb::kSkipStep, RepairVerb::kRetryNow, RepairVerb::kBypass);
  const bool restart = GENERATE(false, true);
  EngineWorld engine;
  const ProcedureId id = open_with_parked(engine);
  REQUIRE(text_of(order_once(engine, id, verb)) == "OK");
  engine.run();
  const std::string before = states(engine);
  if (restart) engine.open();

  for (int i = 0; i < 2; ++i) {
    CHECK(text_of(order_once(engine, id, verb, kNonce, {.who = "bert", .why = "again"})) ==
          "replayed");
    engine.run();
  }

  CHECK(states(engine) == before);
  CHECK(orders_in(engine, id) == 1);
  const auto audit = engine.executor().operate().audit(id);
  CHECK(audit->front().nonce == kNonce);
  CHECK(audit->front().named == id);
  CHECK(audit->front().who == "anna");
  if (verb == RepairVerb::kBypass) return;
  CHECK(text_of(order_once(engine, id, verb, Nonce{7, 10})) == "OK");
  engine.run();
  CHECK(orders_in(engine, id) == 2);
}

TEST_CASE("crashed at every commit, orders that are repeated under their nonces are done once") {
  // Three parked undos are skipped, each under its own nonce: a fourth skip would find nothing, and
  // a skip that is done twice takes the place of the next one.
  crash_at_each_commit([](const CrashAtCommit& at) {
    EngineWorld engine;
    engine.world.scripts["a"] = parks_at_each_undo();
    engine.open();
    at.arm(engine);
    bool crashed = false;
    const auto restart_after_crash = [&] {
      if (!engine.faults().crashed()) return;
      crashed = true;
      engine.open();
      engine.run();
    };
    ProcedureId id;
    const SubmitOptions options{.nonce = Nonce{1, 1}};
    auto submitted = engine.executor().submit(Job(engine.world, "a"), options);
    engine.run();
    restart_after_crash();
    if (!submitted.ok()) submitted = engine.executor().submit(Job(engine.world, "a"), options);
    REQUIRE(submitted.status().to_string() == "OK");
    id = submitted->id;
    engine.run();
    restart_after_crash();
    for (std::uint64_t number = 1; number <= 3; ++number) {
      const Nonce nonce{7, number};
      Result<Ordered> answer = order_once(engine, id, RepairVerb::kSkipStep, nonce);
      engine.run();
      restart_after_crash();
      if (!answer.ok()) answer = order_once(engine, id, RepairVerb::kSkipStep, nonce);
      REQUIRE(answer.status().to_string() == "OK");
      engine.run();
      restart_after_crash();
      // The caller did not get the answer, and asks again.
      REQUIRE(text_of(order_once(engine, id, RepairVerb::kSkipStep, nonce)) == "replayed");
      REQUIRE(orders_in(engine, id) == number);
    }
    engine.run();
    restart_after_crash();
    CHECK(engine.result(id).state == ProcedureState::kRolledBack);
    const auto audit = engine.executor().operate().audit(id);
    REQUIRE(audit->size() == 3);
    for (std::size_t i = 0; i < 3; ++i) CHECK((*audit)[i].step == 3 - i);
    return crashed;
  });
}

TEST_CASE("another order under the same nonce is refused, and the refusal names both") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.steps = 3, .children = {"a"}};
  engine.world.scripts["a"] = parks_at_each_undo();
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId child{root.value + 1};
  REQUIRE(text_of(order_once(engine, child, RepairVerb::kSkipStep)) == "OK");
  engine.run();
  const std::string before = states(engine);
  if (GENERATE(false, true)) engine.open();

  const auto verb = order_once(engine, child, RepairVerb::kBypass);
  const auto procedure = order_once(engine, root, RepairVerb::kSkipStep);
  RepairNote other = kNote;
  other.next_step = 3;
  const auto next = order_once(engine, child, RepairVerb::kSkipStep, kNonce, other);

  for (const auto& refused : {verb, procedure, next}) {
    CHECK(refused.status().code() == StatusCode::kKeyReused);
    CHECK_THAT(refused.status().to_string(),
               ContainsSubstring("nonce 7/9 was used for skip_step of procedure " +
                                 std::to_string(child.value)));
  }
  CHECK_THAT(verb.status().to_string(), ContainsSubstring("for bypass of procedure"));
  CHECK_THAT(next.status().to_string(), ContainsSubstring("followed by step 3"));
  CHECK(states(engine) == before);
  CHECK(orders_in(engine, root) == 1);
}

TEST_CASE("an order that was carried out is known while another one under its nonce looks for it") {
  EngineWorld engine;
  engine.world.scripts["a"] = parks_at_each_undo();
  ExecutorOptions options = engine.options();
  auto interrupted = std::make_unique<InterruptedReads>(memory(engine.disk, engine.store_options));
  InterruptedReads& store = *interrupted;
  options.store = std::move(interrupted);
  engine.open(std::move(options));
  const ProcedureId id = engine.submit("a");
  engine.run();
  REQUIRE(text_of(order_once(engine, id, RepairVerb::kRetryNow)) == "OK");
  engine.run();
  Heard copy;
  store.then = [&] { order_once(engine, id, RepairVerb::kRetryNow, copy); };

  const auto other = order_once(engine, id, RepairVerb::kBypass);
  engine.run();

  CHECK(other.status().code() == StatusCode::kKeyReused);
  CHECK(text_of(copy) == "replayed");
  CHECK(orders_in(engine, id) == 1);
}

TEST_CASE("a copy whose order cannot be looked for is not told that its nonce names another one") {
  EngineWorld engine;
  engine.world.scripts["a"] = parks_at_each_undo();
  ExecutorOptions options = engine.options();
  auto interrupted = std::make_unique<InterruptedReads>(memory(engine.disk, engine.store_options));
  InterruptedReads& store = *interrupted;
  options.store = std::move(interrupted);
  engine.open(std::move(options));
  const ProcedureId id = engine.submit("a");
  engine.run();
  REQUIRE(text_of(order_once(engine, id, RepairVerb::kRetryNow)) == "OK");
  engine.run();
  Heard copy;
  store.then = [&] {
    store.fails = true;
    order_once(engine, id, RepairVerb::kRetryNow, copy);
    engine.run();
    store.fails = false;
  };

  const auto other = order_once(engine, id, RepairVerb::kBypass);
  engine.run();

  CHECK(other.status().code() == StatusCode::kKeyReused);
  REQUIRE(copy);
  CHECK(copy->status().code() == StatusCode::kIoError);
  CHECK(text_of(order_once(engine, id, RepairVerb::kRetryNow)) == "replayed");
}

TEST_CASE("a copy of an order that is not durable yet waits for its answer") {
  EngineWorld engine;
  const ProcedureId id = open_with_parked(engine);
  engine.faults().hold_commit(engine.faults().commits() + 1);
  std::array<Heard, 3> heard;
  Heard other;
  order_once(engine, id, RepairVerb::kSkipStep, heard[0]);
  order_once(engine, id, RepairVerb::kSkipStep, heard[1]);
  order_once(engine, id, RepairVerb::kRetryNow, other);
  order_once(engine, id, RepairVerb::kSkipStep, heard[2]);
  engine.run();
  CHECK(text_of(heard[0]) == "not answered");
  CHECK(text_of(heard[1]) == "not answered");
  CHECK(other->status().code() == StatusCode::kKeyReused);

  engine.faults().release();
  engine.run();

  CHECK(text_of(heard[0]) == "OK");
  CHECK(text_of(heard[1]) == "replayed");
  CHECK(text_of(heard[2]) == "replayed");
  CHECK(orders_in(engine, id) == 1);
}

TEST_CASE("copies of a bypass that waits for a step get its answer, and not more than 64 wait") {
  EngineWorld engine;
  std::vector<Heard> heard(OrderNonces::kCopiesMax + 2);
  bool ordered = false;
  engine.world.scripts["a"] = {
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
      .undo =
          [&](JobRun& run) {
            if (run.step != 2 || std::exchange(ordered, true)) return usual();
            const ProcedureId id = engine.executor().inspect().list().front().id;
            for (Heard& each : heard) order_once(engine, id, RepairVerb::kBypass, each);
            return std::optional(Say::retry("busy"));
          }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();

  CHECK(text_of(heard.front()) == "OK");
  CHECK(text_of(heard[1]) == "replayed");
  CHECK(text_of(heard[OrderNonces::kCopiesMax]) == "replayed");
  CHECK(heard.back()->status().code() == StatusCode::kUnavailable);
  CHECK_THAT(text_of(heard.back()), ContainsSubstring("in progress"));
  CHECK(engine.result(id).bypassed);
  CHECK(orders_in(engine, id) == 1);
}

TEST_CASE("a copy that is withdrawn is not answered and makes room, and its order goes on") {
  EngineWorld engine;
  const ProcedureId id = open_with_parked(engine);
  engine.faults().hold_commit(engine.faults().commits() + 1);
  const OperatorConsole console = engine.executor().operate();
  std::vector<Heard> heard(OrderNonces::kCopiesMax + 4);
  std::vector<OrderTicket> tickets;
  const auto give = [&] {
    Heard& mine = heard[tickets.size()];
    tickets.push_back(console.order_once(kNonce, id, RepairVerb::kSkipStep, kNote,
                                         [&mine](const Result<Ordered>& got) { mine = got; }));
    engine.run();
    return mine.has_value();
  };
  while (!give()) {
  }
  REQUIRE(tickets.size() == OrderNonces::kCopiesMax + 2);
  CHECK(heard[tickets.size() - 1]->status().code() == StatusCode::kUnavailable);
  CHECK_FALSE(console.withdraw(tickets.back()));

  CHECK(console.withdraw(tickets[0]));  // the one that is carried out
  CHECK_FALSE(console.withdraw(tickets[0]));
  CHECK(console.withdraw(tickets[7]));
  CHECK_FALSE(give());
  engine.faults().release();
  engine.run();

  CHECK(text_of(heard[0]) == "not answered");
  CHECK(text_of(heard[1]) == "OK");
  CHECK(text_of(heard[2]) == "replayed");
  CHECK(text_of(heard[7]) == "not answered");
  CHECK(text_of(heard[tickets.size() - 1]) == "replayed");
  CHECK_FALSE(console.withdraw(tickets[1]));
  CHECK(orders_in(engine, id) == 1);
}

TEST_CASE("a bypass that a crash cut off while it waited is carried out when it is repeated") {
  EngineWorld engine;
  Heard lost;
  engine.world.scripts["a"] = {
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
      .undo =
          [&](JobRun& run) {
            if (run.step != 2) return usual();
            if (!lost) {
              order_once(engine, engine.executor().inspect().list().front().id, RepairVerb::kBypass,
                         lost);
              engine.faults().crash_before(engine.faults().commits() + 1,
                                           FaultStore::AfterCrash::kFail);
              lost = Status(StatusCode::kInternal, "not answered");
            }
            return std::optional(Say::fail("stuck"));
          }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  engine.run();
  REQUIRE(engine.faults().crashed());
  engine.open();
  engine.run();
  REQUIRE(engine.describe(id).parked);
  CHECK(orders_in(engine, id) == 0);

  CHECK(text_of(order_once(engine, id, RepairVerb::kBypass)) == "OK");
  engine.run();
  CHECK(text_of(order_once(engine, id, RepairVerb::kBypass)) == "replayed");
  CHECK(engine.result(id).bypassed);
}

TEST_CASE("copies that threads give at the same time are carried out once") {
  EngineWorld engine;
  const ProcedureId id = open_with_parked(engine);
  engine.close();
  auto executor = open_with_threads(engine, nullptr);

  std::atomic<int> done = 0;
  std::atomic<int> replayed = 0;
  const auto give = [&] {
    const auto answer = executor->operate().order_once(kNonce, id, RepairVerb::kSkipStep, kNote);
    if (answer.ok()) ++(answer->replayed ? replayed : done);
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) give();
    });
  threads.clear();

  CHECK(done == 1);
  CHECK(replayed == 8 * 20 - 1);
  CHECK(executor->operate().audit(id)->size() == 1);
}

TEST_CASE("an order that was refused leaves its nonce free") {
  EngineWorld engine;
  bool mended = false;
  engine.world.scripts["a"] = stuck(mended);
  engine.world.scripts["w"] = {.run = [](JobRun&) { return std::optional(Say::wait_for(1h)); }};
  engine.open();
  const ProcedureId waits = engine.submit("w");
  engine.run();
  CHECK(order_once(engine, waits, RepairVerb::kBypass).status().code() ==
        StatusCode::kFailedPrecondition);
  CHECK(text_of(order_once(engine, waits, RepairVerb::kRetryNow)) == "OK");
  engine.run();
  CHECK(text_of(order_once(engine, waits, RepairVerb::kRetryNow)) == "replayed");
}

TEST_CASE("an abort by order is carried out once, also when its tree has ended since") {
  const bool restart = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"w"}};
  engine.world.scripts["w"] = {.run = [](JobRun&) { return std::optional(Say::wait_for(1h)); }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId target{root.value + (GENERATE(false, true) ? 1 : 0)};
  REQUIRE(text_of(order_once(engine, target, RepairVerb::kFailAndRollBack)) == "OK");
  engine.run();
  REQUIRE(engine.result(root).state == ProcedureState::kRolledBack);
  if (restart) engine.open();

  CHECK(text_of(order_once(engine, target, RepairVerb::kFailAndRollBack)) == "replayed");
  CHECK(order_once(engine, target, RepairVerb::kBypass).status().code() == StatusCode::kKeyReused);
}

TEST_CASE("an abort that was durable after the end was not carried out, whatever is left of it") {
  // The end of the root and the abort are in one sync, the end first. A result that does not fit
  // into a batch stays where the record of the live procedure was.
  const bool crash = GENERATE(false, true);
  const bool fits = GENERATE(false, true);
  CAPTURE(crash, fits);
  EngineWorld engine;
  engine.store_options.limits = {.batch_operations = 64, .batch_bytes = 64 << 10};
  Heard heard;
  engine.world.scripts["a"] = {.steps = 1, .run = [fits](JobRun& run) {
                                 for (int i = 0; !fits && i < 61; ++i) {
                                   run.ctx.put_row(std::to_string(i), "x");
                                 }
                                 return usual();
                               }};
  engine.open();
  const ProcedureId id = engine.submit("a");
  const std::size_t end = engine.faults().commits() + 1;
  engine.faults().hold_commit(end);
  engine.run();
  REQUIRE(engine.faults().held() == 1);
  order_once(engine, id, RepairVerb::kFailAndRollBack, heard);
  if (crash) engine.faults().crash_after(end + 1, FaultStore::AfterCrash::kFail);
  engine.faults().release();
  engine.run();
  if (crash) {
    REQUIRE(engine.faults().crashed());
    engine.open();
  } else {
    CHECK(heard->status().code() == StatusCode::kFailedPrecondition);
  }
  REQUIRE(rows_in_store(engine, RowKind::kState) == (fits ? 0 : 1));

  CHECK(orders_in(engine, id) == 0);
  const auto again = order_once(engine, id, RepairVerb::kFailAndRollBack);

  CHECK(again.status().code() == StatusCode::kFailedPrecondition);
  CHECK(engine.result(id).state == ProcedureState::kSuccess);
  engine.run();
  CHECK(rows_in_store(engine, RowKind::kAudit) == 0);
}

TEST_CASE("of an abort that was durable between an end and its acknowledgement nothing tells") {
  // The end is published; the abort that was on its way, and the acknowledgement, are in one sync.
  EngineWorld engine;
  Heard heard;
  Heard copy;
  ExecutorOptions options = engine.options();
  auto gated = std::make_unique<GatedStore>(memory(engine.disk, engine.store_options));
  GatedStore& gate = *gated;
  options.store = std::move(gated);
  engine.world.scripts["a"] = {.steps = 1};
  engine.open(std::move(options));
  const ProcedureId id = engine.submit("a");
  gate.syncs = 0;
  engine.run();
  order_once(engine, id, RepairVerb::kFailAndRollBack, heard);
  gate.syncs = 1;
  engine.run();
  REQUIRE(engine.executor().inspect().live_procedures() == 0);
  Status acknowledged(StatusCode::kInternal, "not answered");
  engine.executor().async().acknowledge(
      id, [&acknowledged](const Status& answer) { acknowledged = answer; });
  gate.syncs = 1;
  gate.all_at_once = true;
  engine.run();
  REQUIRE(acknowledged.to_string() == "OK");
  REQUIRE(heard->status().code() == StatusCode::kFailedPrecondition);

  // The rows of the abort are not deleted yet.
  CHECK(engine.executor().operate().audit(id).status().code() == StatusCode::kExpired);
  order_once(engine, id, RepairVerb::kFailAndRollBack, copy);
  engine.run();

  REQUIRE(copy);
  CHECK(copy->status().code() == StatusCode::kExpired);
  CHECK_THAT(text_of(copy), ContainsSubstring("nothing tells any more"));
}

TEST_CASE("while a result is being acknowledged, its orders count as forgotten") {
  EngineWorld engine;
  const ProcedureId id = open_with_parked(engine);
  const auto verb = GENERATE(RepairVerb::kBypass, RepairVerb::kFailAndRollBack);
  if (verb == RepairVerb::kBypass) REQUIRE(text_of(order_once(engine, id, verb)) == "OK");
  if (verb != RepairVerb::kBypass) {
    REQUIRE(text_of(order_once(engine, id, RepairVerb::kBypass, Nonce{7, 10})) == "OK");
  }
  engine.run();
  // The rows are gone, and memory has the result still.
  engine.faults().crash_after(engine.faults().commits() + 1);
  engine.executor().async().acknowledge(id, [](const Status&) {});
  engine.run();
  REQUIRE(rows_in_store(engine, RowKind::kAudit) == 0);
  Heard heard;

  order_once(engine, id, verb, heard);
  engine.run();

  REQUIRE(heard);
  CHECK(heard->status().code() == StatusCode::kExpired);
}

TEST_CASE("orders of a tree are deleted after its result, so a crash between makes none unknown") {
  // There are more orders than fit into one batch; the crash comes after each commit in turn.
  bool crashed = true;
  for (std::size_t at = 1; crashed; ++at) {
    CAPTURE(at);
    EngineWorld engine;
    engine.store_options.limits = {.batch_operations = 16, .batch_bytes = 64 << 10};
    engine.world.scripts["a"] = stuck_everywhere();
    engine.open();
    const ProcedureId id = engine.submit("a");
    engine.run();
    constexpr std::uint64_t kOrders = 40;
    for (std::uint64_t number = 1; number < kOrders; ++number) {
      REQUIRE(text_of(order_once(engine, id, RepairVerb::kRetryNow, {7, number})) == "OK");
      engine.run();
    }
    REQUIRE(text_of(order_once(engine, id, RepairVerb::kBypass, {7, kOrders})) == "OK");
    engine.run();
    REQUIRE(rows_in_store(engine, RowKind::kAudit) == kOrders);
    engine.faults().crash_after(engine.faults().commits() + at, FaultStore::AfterCrash::kFail);
    engine.executor().async().acknowledge(id, [](const Status&) {});
    engine.run();
    crashed = engine.faults().crashed();
    engine.open();

    for (std::uint64_t number = 1; number <= kOrders; ++number) {
      const auto verb = number == kOrders ? RepairVerb::kBypass : RepairVerb::kRetryNow;
      const auto again = order_once(engine, id, verb, {7, number});
      if (again.ok() && again->replayed) continue;
      REQUIRE(again.status().code() == StatusCode::kExpired);
    }
    engine.run();
    const bool kept = engine.executor().operate().audit(id).ok();
    CHECK(rows_in_store(engine, RowKind::kAudit) == (kept ? kOrders : 0));
  }
}

TEST_CASE("orders about a member are deleted after the result of its root") {
  bool crashed = true;
  for (std::size_t at = 1; crashed; ++at) {
    CAPTURE(at);
    EngineWorld engine;
    engine.store_options.limits = {.batch_operations = 16, .batch_bytes = 64 << 10};
    engine.world.scripts["p"] = {.steps = 3, .children = {"a"}};
    engine.world.scripts["a"] = parks_at_each_undo();
    engine.open();
    const ProcedureId root = engine.submit("p");
    engine.run();
    const ProcedureId child{root.value + 1};
    constexpr std::uint64_t kOrders = 20;
    for (std::uint64_t number = 1; number < kOrders; ++number) {
      REQUIRE(text_of(order_once(engine, child, RepairVerb::kRetryNow, {7, number})) == "OK");
      engine.run();
    }
    REQUIRE(text_of(order_once(engine, child, RepairVerb::kBypass, {7, kOrders})) == "OK");
    engine.run();
    const std::size_t rows = rows_in_store(engine, RowKind::kAudit);
    REQUIRE(rows == 2 * kOrders);
    engine.faults().crash_after(engine.faults().commits() + at, FaultStore::AfterCrash::kFail);
    engine.executor().async().acknowledge(root, [](const Status&) {});
    engine.run();
    crashed = engine.faults().crashed();
    engine.open();

    for (std::uint64_t number = 1; number <= kOrders; ++number) {
      const auto verb = number == kOrders ? RepairVerb::kBypass : RepairVerb::kRetryNow;
      const auto again = order_once(engine, child, verb, {7, number});
      if (again.ok() && again->replayed) continue;
      REQUIRE(again.status().code() == StatusCode::kExpired);
    }
    engine.run();
    const bool kept = engine.executor().operate().audit(root).ok();
    CHECK(rows_in_store(engine, RowKind::kAudit) == (kept ? rows : 0));
  }
}

TEST_CASE("a member that an order named finds the order when its tree has ended") {
  const bool restart = GENERATE(false, true);
  EngineWorld engine;
  engine.world.scripts["p"] = {.children = {"a"}};
  engine.world.scripts["a"] = parks_at_each_undo();
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId child{root.value + 1};
  REQUIRE(text_of(order_once(engine, child, RepairVerb::kBypass)) == "OK");  // about the root
  engine.run();
  REQUIRE(engine.result(root).bypassed);
  if (restart) engine.open();

  CHECK(text_of(order_once(engine, child, RepairVerb::kBypass)) == "replayed");
  REQUIRE(orders_in(engine, child) == 1);
  CHECK(engine.executor().operate().audit(child)->front().procedure == root);
  CHECK(engine.executor().operate().audit(child)->front().named == child);

  REQUIRE(engine.executor().acknowledge(root).ok());
  CHECK(rows_in_store(engine, RowKind::kAudit) == 0);
  CHECK(order_once(engine, child, RepairVerb::kBypass).status().code() == StatusCode::kExpired);
}

TEST_CASE("of a tree that is forgotten nothing tells whether an order was carried out") {
  EngineWorld engine;
  const ProcedureId id = open_with_parked(engine);
  REQUIRE(text_of(order_once(engine, id, RepairVerb::kBypass)) == "OK");
  engine.run();
  REQUIRE(engine.executor().acknowledge(id).ok());

  const auto again = order_once(engine, id, RepairVerb::kBypass);

  CHECK(again.status().code() == StatusCode::kExpired);
  CHECK_THAT(again.status().to_string(), ContainsSubstring("nothing tells any more"));
}

TEST_CASE("an order without a nonce, or where no record is kept, is refused") {
  EngineWorld engine;
  ExecutorOptions options = engine.options();
  options.store = noop();
  engine.open(std::move(options));
  CHECK_THAT(text_of(order_once(engine, {1}, RepairVerb::kBypass)),
             ContainsSubstring("the store keeps no records"));
  engine.open();
  CHECK(order_once(engine, {1}, RepairVerb::kBypass, Nonce{7, 0}).status().code() ==
        StatusCode::kInvalidArgument);
  CHECK(order_once(engine, {1}, RepairVerb::kBypass, kNonce, {}).status().code() ==
        StatusCode::kInvalidArgument);
}

}  // namespace pv2::testing::repeated_order_test
