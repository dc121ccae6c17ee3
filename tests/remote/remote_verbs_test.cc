// SPDX-License-Identifier: Apache-2.0
//
// Abort, acknowledge, signal, list and explain from elsewhere do what they do locally, and once,
// whatever the network loses.

#include "remote/remote_world.h"
#include "verb_messages.h"

namespace pv2::testing::remote_verbs_test {
namespace {

using namespace std::chrono_literals;

constexpr ProcedureId kNever{4711};

ProcedureId begin_with_waiting_job(RemoteWorld& world) {
  world.begin();
  const ProcedureId id = world.engine.submit("w");
  world.settle();
  return id;
}

std::uint64_t run_of(RemoteWorld& world) {
  const auto run = world.answer<Result<std::uint64_t>>(
      [&](auto done) { world.remote->signal_run(std::move(done)); });
  REQUIRE(run.status().to_string() == "OK");
  return *run;
}

// What a caller writes down before it sends a signal.
RemoteSignalOptions kept(RemoteWorld& world, Nonce nonce, Duration timeout = 30s) {
  return {.nonce = nonce,
          .expires_at = world.engine.clock->wall_now() + 15min,
          .run = run_of(world),
          .timeout = timeout};
}

}  // namespace

TEST_CASE("an abort from elsewhere undoes the tree, also if calls and answers are lost") {
  RemoteWorld world;
  const ProcedureId id = begin_with_waiting_job(world);
  const auto lost = GENERATE(FrameKind::kPing, FrameKind::kCall, FrameKind::kReply);
  if (lost != FrameKind::kPing) world.lose(lost, "pv2.abort");

  CHECK(words(world.abort(id, "too late")) == "OK");

  const auto result = world.wait(id);
  REQUIRE(result.status().to_string() == "OK");
  CHECK(result->state == ProcedureState::kRolledBack);
  CHECK(result->status.to_string() == "ABORTED: aborted by me: too late");
}

TEST_CASE("aborts that the executor refuses fail with its answer") {
  RemoteWorld world;
  const ProcedureId waiting = begin_with_waiting_job(world);
  const ProcedureId ended = world.engine.submit("a");
  world.settle();

  CHECK(words(world.abort(kNever)) == "FAILED NOT_FOUND");
  CHECK(words(world.abort(ended)) == "FAILED FAILED_PRECONDITION");
  CHECK(words(world.abort(waiting)) == "OK");
  world.settle();
  CHECK(words(world.abort(waiting)) == "FAILED FAILED_PRECONDITION");  // as it would be locally
  CHECK(world.engine.executor().abort(waiting).code() == StatusCode::kFailedPrecondition);
}

TEST_CASE("an abort that was refused at first does not take another one for its own") {
  RemoteWorld world;
  const ProcedureId id = begin_with_waiting_job(world);
  CHECK(words(world.abort(id, "by another")) == "OK");
  world.settle();
  world.refusals = 1;

  CHECK(words(world.abort(id)) == "FAILED FAILED_PRECONDITION");
  CHECK(world.refusals == 0);
}

TEST_CASE("an abort of a tree that goes on beyond its point of no return leaves no wait behind") {
  RemoteWorld world;
  world.engine.world.scripts["c"] = {.steps = 4, .run = [](JobRun& run) -> std::optional<Outcome> {
                                       return run.step == 4 ? std::optional(Say::wait_for(1h))
                                                            : usual();
                                     }};
  world.begin();
  const ProcedureId id = world.engine.submit<CommittingJob>("c");
  world.settle();

  CHECK(words(world.abort(id)) == "FAILED FAILED_PRECONDITION");
  CHECK(world.service->counts().waits == 0);
}

TEST_CASE("an acknowledgement from elsewhere deletes the result, also if its answer is lost") {
  RemoteWorld world;
  world.begin();
  const bool is_lost = GENERATE(false, true);
  const SubmitOutcome submitted = world.submit("a");
  REQUIRE(world.wait(submitted.id).ok());
  if (is_lost) world.lose(FrameKind::kReply, "pv2.acknowledge");

  CHECK(words(world.acknowledge(submitted.id)) == "OK");

  CHECK(world.wait(submitted.id).status().code() == StatusCode::kExpired);
  CHECK(world.find(submitted.nonce).status().code() == StatusCode::kNotFound);
  CHECK(words(world.acknowledge(submitted.id)) == "FAILED EXPIRED");
  CHECK(words(world.acknowledge(kNever)) == "FAILED NOT_FOUND");
}

TEST_CASE("a procedure that goes on cannot be acknowledged") {
  RemoteWorld world;
  const ProcedureId id = begin_with_waiting_job(world);

  CHECK(words(world.acknowledge(id)) == "FAILED FAILED_PRECONDITION");
}

TEST_CASE("a signal from elsewhere is delivered once, also if calls and answers are lost") {
  RemoteWorld world;
  const ProcedureId id = begin_with_waiting_job(world);
  const auto lost = GENERATE(FrameKind::kPing, FrameKind::kCall, FrameKind::kReply);
  const std::string method = GENERATE("pv2.signal", "pv2.run");
  if (lost != FrameKind::kPing) world.lose(lost, method, 3);

  const RemoteOutcome sent = world.signal(id, "one");

  CHECK(words(sent) == "OK");
  CHECK(sent.nonce.value != 0);
  world.settle();
  CHECK(world.count("got one") == 1);
  CHECK(world.engine.result(id).result == "w done");
}

TEST_CASE("a nonce is one signal, and another nonce another signal") {
  RemoteWorld world;
  world.engine.world.scripts["two"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step > 2) return usual();
    const auto signal = run.ctx.signal("go");
    if (!signal) return Say::wait();
    run.world.journal.note("got " + *signal);
    return usual();
  }};
  world.begin();
  const ProcedureId id = world.engine.submit("two");

  const RemoteSignalOptions first = kept(world, {7, 1});

  CHECK(words(world.signal(id, "x", first)) == "OK");
  CHECK(words(world.signal(id, "x", first)) == "OK");
  CHECK(words(world.signal(id, "y", first)) == "FAILED KEY_REUSED");
  CHECK(world.count("got x") == 1);

  CHECK(words(world.signal(id, "x", kept(world, {7, 2}))) == "OK");
  world.settle();
  CHECK(world.count("got x") == 2);
  CHECK(words(world.signal(id, "x", first)) == "OK");  // though `id` has ended
}

TEST_CASE("a signal that was written down before it was sent is accepted once by all processes") {
  RemoteWorld world;
  world.engine.world.scripts["two"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    if (run.step > 2) return usual();
    const auto signal = run.ctx.signal("go");
    if (!signal) return Say::wait();
    run.world.journal.note("got " + *signal);
    return usual();
  }};
  world.begin();
  const ProcedureId id = world.engine.submit("two");
  const RemoteSignalOptions written = kept(world, {7, 1});
  const bool server_ends = GENERATE(false, true);

  // The first process sends it, and dies before it has the outcome.
  world.lose(FrameKind::kReply, "pv2.signal");
  world.remote->signal(id, "go", "x", written, [](const RemoteOutcome&) {});
  world.settle();
  world.disconnect();
  if (server_ends) world.crash_server();
  world.connect();

  // The second process goes on with what the first one has written down.
  CHECK(words(world.signal(id, "x", written)) == (server_ends ? "UNKNOWN FENCED" : "OK"));
  world.settle();
  CHECK(world.count("got x") == 1);
}

TEST_CASE("a signal that an earlier process may have sent is not reported as failed") {
  RemoteWorld world;
  const ProcedureId id = begin_with_waiting_job(world);
  const RemoteSignalOptions written = kept(world, {7, 1}, 5s);
  world.stop_serving();

  CHECK(words(world.signal(id, "x", written)) == "UNKNOWN DEADLINE_EXCEEDED");
}

TEST_CASE("a signal whose nonce is kept without its run or its end is refused and not sent") {
  RemoteWorld world;
  const ProcedureId id = begin_with_waiting_job(world);
  RemoteSignalOptions options = kept(world, {7, 1});
  SECTION("no run") { options.run = 0; }
  SECTION("no end") { options.expires_at.reset(); }
  SECTION("no nonce") { options.nonce = {}; }

  CHECK(words(world.signal(id, "x", options)) == "FAILED INVALID_ARGUMENT");
  // A callback that throws, or is none, disturbs nobody.
  world.remote->signal(id, "go", "x", options, [](const RemoteOutcome&) { throw 1; });
  world.remote->signal(id, "go", "x", options, {});
  CHECK(words(world.signal(id, "x", options)) == "FAILED INVALID_ARGUMENT");
  world.settle();
  CHECK(world.count("got x") == 0);
}

TEST_CASE("the run of a service is another one after its server has ended, and 0 is none") {
  RemoteWorld world;
  world.begin();
  const std::uint64_t first = run_of(world);

  world.crash_server();

  CHECK(first != 0);
  CHECK(run_of(world) != first);
}

TEST_CASE("a signal gives up after its timeout, however many calls it needs") {
  RemoteWorld world;
  world.begin();
  const SteadyTime begin = world.engine.clock->steady_now();
  // The answer to pv2.run comes late, and no signal gets through.
  world.lose(FrameKind::kReply, "pv2.run", 2);
  world.lose(FrameKind::kCall, "pv2.signal", 1000);

  CHECK(words(world.signal(kNever, "x", {.timeout = 6s})) == "UNKNOWN DEADLINE_EXCEEDED");

  CHECK(world.engine.clock->steady_now() - begin < 7s);
}

TEST_CASE("signals that the executor refuses fail with its answer, the same for each copy") {
  RemoteWorld world;
  world.begin();
  const ProcedureId ended = world.engine.submit("a");
  world.settle();
  world.lose(FrameKind::kReply, "pv2.signal");

  CHECK(words(world.signal(ended, "x")) == "FAILED FAILED_PRECONDITION");
  CHECK(words(world.signal(kNever, "x")) == "FAILED NOT_FOUND");
  CHECK(words(world.signal(ended, "x", {}, std::string())) == "FAILED INVALID_ARGUMENT");
}

TEST_CASE(
    "a signal without an answer is unknown after the end of its server, and is not repeated") {
  RemoteWorld world;
  const ProcedureId id = begin_with_waiting_job(world);
  const bool arrives = GENERATE(true, false);
  world.lose(arrives ? FrameKind::kReply : FrameKind::kCall, "pv2.signal");
  const auto outcome = std::make_shared<std::optional<RemoteOutcome>>();
  world.remote->signal(id, "go", "one", {},
                       [outcome](RemoteOutcome given) { outcome->emplace(std::move(given)); });
  world.settle();

  world.crash_server();
  world.run_until([&] { return outcome->has_value(); });

  CHECK(words(**outcome) == "UNKNOWN FENCED");
  const RemoteSignalOptions again{
      .nonce = (*outcome)->nonce, .expires_at = (*outcome)->expires_at, .run = (*outcome)->run};
  CHECK(words(world.signal(id, "one", again)) == "UNKNOWN FENCED");
  world.settle();
  CHECK(world.count("got one") == (arrives ? 1 : 0));
}

TEST_CASE("a client that knew an earlier run of the service sends its signals to the new one") {
  RemoteWorld world;
  const ProcedureId id = begin_with_waiting_job(world);
  CHECK(words(world.signal(kNever, "x")) == "FAILED NOT_FOUND");

  world.crash_server();
  world.settle();  // the client hears that its connection has ended

  CHECK(words(world.signal(id, "one")) == "OK");
  world.settle();
  CHECK(world.count("got one") == 1);
}

TEST_CASE("a signal whose time has passed is refused, known or not") {
  RemoteWorld world;
  const ProcedureId id = begin_with_waiting_job(world);
  world.lose(FrameKind::kReply, "pv2.signal", 1000);
  const RemoteOutcome unknown = world.signal(id, "one", {.timeout = 5s});
  REQUIRE(words(unknown) == "UNKNOWN DEADLINE_EXCEEDED");
  REQUIRE(unknown.expires_at.has_value());
  world.transport->run_for(1h);
  world.settle();
  const RemoteSignalOptions resumed{
      .nonce = unknown.nonce, .expires_at = unknown.expires_at, .run = unknown.run};

  CHECK(words(world.signal(id, "one", resumed)).starts_with("UNKNOWN"));
  CHECK(world.count("got one") == 1);
}

TEST_CASE("a signal with a nonce, from any client, says until when it is sent") {
  RemoteWorld world;
  world.begin();
  const RemoteOutcome sent = world.signal(kNever, "one");
  const std::string body = remote::to_bytes(remote::SignalMessage{kNever, "go", "two", sent.run});
  const auto send = [&](CallOptions options) {
    return words(world.answer<CallOutcome>(
        [&](auto done) { world.client->call("pv2.signal", body, options, std::move(done)); }));
  };
  const WallTime now = world.engine.clock->wall_now();

  CHECK(send({.nonce = {7, 1}}) == "FAILED INVALID_ARGUMENT");
  CHECK(send({.nonce = {7, 1}, .expires_at = now + 48h}) == "FAILED INVALID_ARGUMENT");
  CHECK(send({.nonce = {7, 1}, .expires_at = now + 1h}) == "FAILED NOT_FOUND");
}

TEST_CASE("nonces of signals are forgotten after their time, as later signals arrive") {
  RemoteWorld world;
  world.begin();
  for (int i = 0; i < 5; ++i) CHECK(words(world.signal(kNever, "x")) == "FAILED NOT_FOUND");
  CHECK(world.service->counts().signals_kept == 5);

  world.transport->run_for(1h);
  CHECK(words(world.signal(kNever, "x")) == "FAILED NOT_FOUND");

  CHECK(world.service->counts().signals_kept == 1);
}

TEST_CASE("a listing from elsewhere is the local one, page by page") {
  RemoteWorld world;
  world.engine.world.scripts["l"] = {
      .run = [](JobRun&) { return Say::retry("the shop is closed"); },
      .locks =
          LockSet().table("shop", "orders", LockMode::kExclusive).global("all", LockMode::kShared)};
  world.begin();
  for (int i = 0; i < 5; ++i) world.engine.submit("w", {.owner = "o" + std::to_string(i)});
  world.engine.submit("l");
  world.settle();
  const auto list = [&](const ListFilter& filter, ProcedureId after, std::size_t limit) {
    return world.answer<Result<ProcedurePage>>(
        [&](auto done) { world.remote->list(filter, after, limit, std::move(done)); });
  };
  ListFilter with_fields;
  with_fields.with_fields = true;

  const auto all = list(with_fields, {}, 0);
  REQUIRE(all.status().to_string() == "OK");
  const ProcedurePage local = world.engine.executor().inspect().list(with_fields);
  REQUIRE(all->procedures.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    const ProcedureInfo& here = local.procedures[i];
    const ProcedureInfo& there = all->procedures[i];
    CAPTURE(here.id.value);
    CHECK(there.id == here.id);
    CHECK(there.parent == here.parent);
    CHECK(there.root == here.root);
    CHECK(there.type == here.type);
    CHECK(there.owner == here.owner);
    CHECK(there.state == here.state);
    CHECK(there.step == here.step);
    CHECK(there.step_name == here.step_name);
    CHECK(there.undo == here.undo);
    CHECK(there.attempt == here.attempt);
    CHECK(there.holds_locks == here.holds_locks);
    CHECK(there.locks == here.locks);
    CHECK(there.error == here.error);
    CHECK(there.submitted == here.submitted);
    CHECK(there.updated == here.updated);
    CHECK(there.history.size() == here.history.size());
    CHECK(there.fields == here.fields);
    CHECK_FALSE(there.fields.empty());
  }
  CHECK(all->procedures[5].attempt == 2);

  const auto page = list({}, all->procedures[1].id, 2);
  REQUIRE(page.status().to_string() == "OK");
  REQUIRE(page->procedures.size() == 2);
  CHECK(page->procedures[0].id == all->procedures[2].id);
  CHECK(page->next == all->procedures[3].id);
  ListFilter filter;
  filter.owner = "o3";
  filter.state = all->procedures[3].state;
  filter.is_root = true;
  CHECK(list(filter, {}, 0)->procedures.size() == 1);
  filter = {};
  filter.entity = ResourceKey{ResourceClass::kTable, "shop:orders"};
  filter.older_than = 0s;
  CHECK(list(filter, {}, 0)->procedures.size() == 1);
}

TEST_CASE("a page ends where an answer would be too large") {
  RemoteWorld world;
  world.service_options.answer_bytes_max = 2000;
  world.engine.world.scripts["w" + std::string(5000, 'x')] = world.engine.world.scripts["w"];
  world.begin();
  std::vector<ProcedureId> ids;
  for (int i = 0; i < 30; ++i) ids.push_back(world.engine.submit("w"));
  world.engine.world.scripts["w" + std::string(5000, 'x')] = world.engine.world.scripts["w"];
  ids.push_back(world.engine.submit("w" + std::string(5000, 'x')));
  world.settle();

  std::vector<ProcedureId> listed;
  std::size_t pages = 0;
  Status left_out;
  ListFilter with_fields;
  with_fields.with_fields = true;
  for (ProcedureId after{}; pages == 0 || after; ++pages) {
    const auto page = world.answer<Result<ProcedurePage>>(
        [&](auto done) { world.remote->list(with_fields, after, 1000, std::move(done)); });
    REQUIRE(page.status().to_string() == "OK");
    for (const ProcedureInfo& info : page->procedures) {
      listed.push_back(info.id);
      left_out = info.fields_error;
    }
    after = page->next;
  }

  CHECK(listed == ids);
  CHECK(pages > 3);
  CHECK(left_out.code() == StatusCode::kNotSupported);
}

TEST_CASE("an explanation from elsewhere reads like the local one") {
  RemoteWorld world;
  const LockSet orders = LockSet().table("shop", "orders", LockMode::kExclusive);
  world.engine.world.scripts["h"] = {.run = [](JobRun&) { return Say::retry("no paper"); },
                                     .locks = orders};
  world.engine.world.scripts["l"] = {.locks = orders};
  world.begin();
  world.engine.submit("h");
  world.settle();
  const ProcedureId waiting = world.engine.submit("l");
  world.settle();
  const auto explain = [&](ProcedureId id) {
    return world.answer<Result<Explanation>>(
        [&](auto done) { world.remote->explain(id, std::move(done)); });
  };

  const auto explanation = explain(waiting);

  REQUIRE(explanation.status().to_string() == "OK");
  const auto local = world.engine.executor().inspect().explain(waiting);
  CHECK(to_string(*explanation) == to_string(*local));
  CHECK(explanation->root_causes == local->root_causes);
  CHECK(explanation->procedures.size() == 2);
  CHECK(explain(kNever).status().code() == StatusCode::kNotFound);
}

}  // namespace pv2::testing::remote_verbs_test
