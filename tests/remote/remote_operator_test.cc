// SPDX-License-Identifier: Apache-2.0
//
// What an operator asks and orders from elsewhere is what the executor says and does locally; an
// order is carried out once at most, whatever the network loses.

#include <pv2/store/noop_procedure_store.h>

#include <algorithm>

#include "remote/remote_world.h"

namespace pv2::testing::remote_operator_test {
namespace {

using namespace std::chrono_literals;

const RepairNote kNote{.who = "anna", .why = "ticket 7"};

// Fails at step 3; the undo of step 2 fails for good until `mended`.
JobScript stuck(const bool& mended) {
  return {
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
      .undo =
          [&mended](JobRun& run) {
            return run.step == 2 && !mended ? std::optional(Say::fail("stuck")) : usual();
          },
      .locks = LockSet().table("shop", "orders", LockMode::kExclusive)};
}

std::string joined(const Result<std::vector<std::string>>& lines) {
  REQUIRE(lines.status().to_string() == "OK");
  std::string text;
  for (const std::string& line : *lines) text += line + "\n";
  return text;
}

/// A job that holds a table, is parked at an undo, and another one that waits for the table.
struct ParkedWorld {
  RemoteWorld world;
  bool mended = false;
  ProcedureId parked;
  ProcedureId waiting;

  ParkedWorld() {
    world.engine.world.scripts["stuck"] = stuck(mended);
    world.begin();
    parked = world.engine.submit("stuck");
    waiting = world.engine.submit("stuck");
    world.settle();
    REQUIRE(world.engine.describe(parked).parked);
  }

  /// Orders a bypass whose commit is held, as that of one that waits for a step.
  void begin_bypass(Duration timeout, std::optional<OrderOutcome>& outcome) {
    world.engine.faults().hold_commit(world.engine.faults().commits() + 1);
    world.remote->order(parked, RepairVerb::kBypass, kNote, {.timeout = timeout},
                        [&outcome](OrderOutcome got) { outcome = std::move(got); });
  }
  OrderOutcome order(ProcedureId id, RepairVerb verb, const RemoteOrderOptions& options = {}) {
    return world.answer<OrderOutcome>(
        [&](auto done) { world.remote->order(id, verb, kNote, options, std::move(done)); });
  }
  Result<RemoteAudit> page(ProcedureId id, AuditRange range) {
    return world.answer<Result<RemoteAudit>>(
        [&](auto done) { world.remote->audit(id, range, std::move(done)); });
  }
  Result<std::vector<AuditEntry>> audit(ProcedureId id) {
    auto all = page(id, {});
    if (!all.ok()) return all.status();
    CHECK(all->earlier == 0);
    return std::move(all->entries);
  }
  Result<std::vector<std::string>> preview(ProcedureId id, RepairVerb verb) {
    return world.answer<Result<std::vector<std::string>>>(
        [&](auto done) { world.remote->preview(id, verb, std::move(done)); });
  }
};

}  // namespace

TEST_CASE("locks are told from elsewhere with their holders, all their waiters, and for how long") {
  ParkedWorld story;
  story.world.engine.clock->advance(90s);

  const auto locks = story.world.answer<Result<RemoteLocks>>(
      [&](auto done) { story.world.remote->locks(std::move(done)); });

  REQUIRE(locks.status().to_string() == "OK");
  CHECK(locks->left_out == 0);
  const RemoteLock* table = nullptr;
  for (const RemoteLock& lock : locks->locks) {
    if (to_string(lock.key) == "table shop:orders") table = &lock;
  }
  REQUIRE(table != nullptr);
  REQUIRE(table->holders.size() == 1);
  CHECK(table->holders[0].id == story.parked);
  CHECK(table->holders[0].mode == LockMode::kExclusive);
  CHECK(table->holders[0].age >= 90s);
  CHECK_FALSE(table->holders[0].type.empty());
  REQUIRE(table->waiters.size() == 1);
  CHECK(table->waiters[0].id == story.waiting);
}

TEST_CASE("locks that do not fit into an answer are counted") {
  ParkedWorld story;
  story.world.stop_serving();
  story.world.service_options.answer_bytes_max = 100;
  story.world.serve();

  const auto locks = story.world.answer<Result<RemoteLocks>>(
      [&](auto done) { story.world.remote->locks(std::move(done)); });

  REQUIRE(locks.status().to_string() == "OK");
  CHECK(locks->locks.empty());
  CHECK(locks->left_out == story.world.engine.executor().inspect().locks().size());
}

TEST_CASE("an audit that does not fit into an answer is read in pages, the newest entries first") {
  ParkedWorld story;
  constexpr std::uint64_t kOrders = 7;
  for (std::uint64_t i = 0; i < kOrders; ++i) {
    // The undo at which it is parked fails again.
    REQUIRE(words(story.order(story.parked, RepairVerb::kRetryNow)) == "OK");
    story.world.settle();
  }
  const auto local = story.world.engine.executor().operate().audit(story.parked);
  REQUIRE(local.ok());
  REQUIRE(local->size() == kOrders);
  story.world.stop_serving();
  story.world.service_options.answer_bytes_max = 400;
  story.world.serve();

  std::vector<Nonce> read;
  AuditRange range;
  int pages = 0;
  do {
    const auto page = story.page(story.parked, range);
    REQUIRE(page.status().to_string() == "OK");
    REQUIRE_FALSE(page->entries.empty());
    CHECK(page->entries.size() < kOrders);
    std::vector<Nonce> nonces;
    for (const AuditEntry& entry : page->entries) nonces.push_back(entry.nonce);
    read.insert(read.begin(), nonces.begin(), nonces.end());
    range.before = page->earlier + 1;
    ++pages;
  } while (range.before != 1);

  CHECK(pages > 2);
  REQUIRE(read.size() == kOrders);
  for (std::uint64_t i = 0; i < kOrders; ++i) CHECK(read[i] == (*local)[i].nonce);
  const auto some = story.page(story.parked, {.before = 4, .limit = 1});
  REQUIRE(some.status().to_string() == "OK");
  REQUIRE(some->entries.size() == 1);
  CHECK(some->entries.front().nonce == (*local)[2].nonce);
  CHECK(some->earlier == 2);
  CHECK(story.page(story.parked, {.before = 1})->entries.empty());
  CHECK(story.page(story.parked, {.before = 99})->earlier == story.page(story.parked, {})->earlier);
}

TEST_CASE("an answer that is too large fails at once, and is not asked for again") {
  ParkedWorld story;
  REQUIRE(words(story.order(story.parked, RepairVerb::kRetryNow)) == "OK");
  story.world.stop_serving();
  story.world.service_options.answer_bytes_max = 20;
  story.world.serve();

  const auto history = story.world.answer<Result<std::vector<HistoryEntry>>>(
      [&](auto done) { story.world.remote->history(story.parked, std::move(done)); });
  const auto explanation = story.world.answer<Result<Explanation>>(
      [&](auto done) { story.world.remote->explain(story.parked, std::move(done)); });

  for (const Status& status : {history.status(), explanation.status(),
                               story.preview(story.parked, RepairVerb::kSkipStep).status(),
                               story.page(story.parked, {}).status()}) {
    CHECK(status.code() == StatusCode::kNotSupported);
    CHECK_THAT(std::string(status.message()), ContainsSubstring("ExecutorServiceOptions"));
  }
}

TEST_CASE("the history of a procedure is told from elsewhere, also when it has ended") {
  ParkedWorld story;
  const ProcedureId ended = story.world.engine.submit("a");
  story.world.settle();

  for (const ProcedureId id : {story.parked, ended}) {
    const auto history = story.world.answer<Result<std::vector<HistoryEntry>>>(
        [&](auto done) { story.world.remote->history(id, std::move(done)); });
    REQUIRE(history.status().to_string() == "OK");
    const auto local = story.world.engine.executor().inspect().history(id);
    REQUIRE(local.ok());
    REQUIRE(history->size() == local->size());
    CHECK_FALSE(history->empty());
    CHECK(history->back().step == local->back().step);
    CHECK(history->back().at == local->back().at);
    CHECK(history->back().undo == local->back().undo);
  }
}

TEST_CASE("an order from elsewhere is previewed, carried out, and in the audit") {
  ParkedWorld story;
  const auto lines = story.preview(story.parked, RepairVerb::kRetryNow);
  CHECK(joined(lines) == joined(story.world.engine.executor().operate().preview(
                             story.parked, RepairVerb::kRetryNow)));
  story.mended = true;

  CHECK(words(story.order(story.parked, RepairVerb::kRetryNow)) == "OK");

  CHECK(story.world.wait(story.parked)->state == ProcedureState::kRolledBack);
  const auto audit = story.audit(story.parked);
  REQUIRE(audit.status().to_string() == "OK");
  REQUIRE(audit->size() == 1);
  CHECK(audit->front().verb == RepairVerb::kRetryNow);
  CHECK(audit->front().who == kNote.who);
  CHECK(audit->front().why == kNote.why);
}

TEST_CASE("an order that the executor refuses fails with its answer") {
  ParkedWorld story;

  CHECK(words(story.order({4711}, RepairVerb::kBypass)) == "FAILED NOT_FOUND");
  CHECK(words(story.order(story.waiting, RepairVerb::kSkipStep)) == "FAILED FAILED_PRECONDITION");
  CHECK_FALSE(story.preview(story.waiting, RepairVerb::kSkipStep).ok());
}

TEST_CASE("an order that is lost, or whose answer is, is sent again and carried out once") {
  ParkedWorld story;
  const auto lost = GENERATE(FrameKind::kCall, FrameKind::kReply);
  const auto verb = GENERATE(RepairVerb::kSkipStep, RepairVerb::kBypass);
  story.world.lose(lost, "pv2.order");

  const OrderOutcome outcome = story.order(story.parked, verb);

  CHECK(words(outcome) == "OK");
  CHECK(outcome.replayed == (lost == FrameKind::kReply));
  const auto audit = story.audit(story.parked);
  REQUIRE(audit.status().to_string() == "OK");
  REQUIRE(audit->size() == 1);
  CHECK(audit->front().nonce == outcome.nonce);
  CHECK(audit->front().named == story.parked);
}

TEST_CASE("an order is taken up again under its nonce, and another one under it fails") {
  ParkedWorld story;
  const OrderOutcome first = story.order(story.parked, RepairVerb::kSkipStep);
  REQUIRE(words(first) == "OK");
  story.world.settle();

  const OrderOutcome again =
      story.order(story.parked, RepairVerb::kSkipStep, {.nonce = first.nonce, .resumed = true});
  const OrderOutcome other =
      story.order(story.parked, RepairVerb::kBypass, {.nonce = first.nonce, .resumed = true});

  CHECK(words(again) == "OK");
  CHECK(again.replayed);
  CHECK(words(other) == "FAILED KEY_REUSED");
  CHECK(story.audit(story.parked)->size() == 1);
}

TEST_CASE("an order that waits longer than a server remembers calls is asked for to its end") {
  ParkedWorld story;
  RemoteWorld& world = story.world;
  std::optional<OrderOutcome> outcome;
  story.begin_bypass(1h, outcome);
  const auto wait = [&](Duration most) {
    for (Duration waited{}; waited < most && !outcome; waited += 1s) {
      world.transport->run_for(1s);
      world.settle();
    }
  };
  wait(59min);
  REQUIRE_FALSE(outcome);
  const bool gives_up = GENERATE(false, true);
  if (gives_up) wait(2min);
  // Its copies whose calls are over have left room for others.
  const Nonce nonce = gives_up ? outcome->nonce : Nonce{};
  std::optional<Result<Ordered>> copy;
  if (gives_up) {
    CHECK(words(*outcome) == "UNKNOWN DEADLINE_EXCEEDED");
    world.engine.executor().operate().order_once(
        nonce, story.parked, RepairVerb::kBypass, kNote,
        [&copy](const Result<Ordered>& got) { copy = got; });
    world.settle();
    CHECK_FALSE(copy);
    outcome.reset();
    world.remote->order(story.parked, RepairVerb::kBypass, kNote, {.nonce = nonce, .resumed = true},
                        [&outcome](OrderOutcome got) { outcome = std::move(got); });
  }

  world.engine.faults().release();
  wait(1min);

  REQUIRE(outcome);
  CHECK(words(*outcome) == "OK");
  CHECK(outcome->replayed == gives_up);
  if (gives_up) CHECK(copy->ok());
  CHECK(story.audit(story.parked)->size() == 1);
}

TEST_CASE("of an order that is on its way when its server stops nobody is told that it failed") {
  ParkedWorld story;
  RemoteWorld& world = story.world;
  std::optional<OrderOutcome> outcome;
  story.begin_bypass(20s, outcome);
  world.transport->run_for(1s);
  world.settle();
  REQUIRE_FALSE(outcome);

  world.server->stop(10s);
  world.transport->run_for(1min);
  REQUIRE(outcome);
  CHECK(words(*outcome).starts_with("UNKNOWN "));

  world.engine.faults().release();
  world.settle();
  CHECK(world.engine.result(story.parked).bypassed);  // it was carried out
}

TEST_CASE("an abort and an acknowledgement are asked for as long as their timeout says") {
  ParkedWorld story;
  RemoteWorld& world = story.world;
  world.remote = std::make_unique<RemoteExecutor>(*world.client, RemoteOptions{.timeout = 1h});
  world.lose(FrameKind::kReply, "pv2.abort", 1'000'000);
  world.lose(FrameKind::kReply, "pv2.acknowledge", 1'000'000);
  std::vector<RemoteOutcome> outcomes;
  const auto done = [&outcomes](RemoteOutcome got) { outcomes.push_back(std::move(got)); };
  world.remote->abort(story.waiting, "no", "me", done);
  world.remote->acknowledge(story.parked, done);

  for (int minute = 0; minute < 61; ++minute) {
    world.transport->run_for(1min);
    world.settle();
    REQUIRE(outcomes.empty() == (minute < 59));
  }

  for (const RemoteOutcome& outcome : outcomes) {
    CHECK(words(outcome) == "UNKNOWN DEADLINE_EXCEEDED");
  }
}

TEST_CASE("an order goes to an executor whose store keeps no records, where nothing tells copies") {
  ParkedWorld story;
  RemoteWorld& world = story.world;
  world.stop_serving();
  ExecutorOptions options = world.engine.options();
  options.store = noop();
  world.engine.open(std::move(options));
  world.serve();
  const ProcedureId id = world.engine.submit("stuck");
  world.settle();
  REQUIRE(world.engine.describe(id).parked);
  world.lose(FrameKind::kReply, "pv2.order");

  const OrderOutcome outcome = story.order(id, RepairVerb::kRetryNow);

  // The answer to the first was lost; the second was carried out too.
  CHECK(words(outcome) == "OK");
  CHECK_FALSE(outcome.replayed);
  const auto history = world.engine.executor().inspect().history(id);
  REQUIRE(history.ok());
  CHECK(std::count_if(history->begin(), history->end(), [](const HistoryEntry& entry) {
          return entry.outcome == Outcome::Kind::kRetriedNow;
        }) == 2);
}

TEST_CASE("a lost order about a tree that was forgotten meanwhile is unknown") {
  ParkedWorld story;
  const OrderOutcome first = story.order(story.parked, RepairVerb::kBypass);
  REQUIRE(words(first) == "OK");
  REQUIRE(story.world.wait(story.parked).status().to_string() == "OK");
  REQUIRE(story.world.engine.executor().acknowledge(story.parked).ok());

  const OrderOutcome again =
      story.order(story.parked, RepairVerb::kBypass, {.nonce = first.nonce, .resumed = true});

  CHECK(words(again) == "UNKNOWN EXPIRED");
  CHECK(words(story.order(story.parked, RepairVerb::kBypass)) == "FAILED EXPIRED");
}

}  // namespace pv2::testing::remote_operator_test
