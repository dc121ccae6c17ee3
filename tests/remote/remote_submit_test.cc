// SPDX-License-Identifier: Apache-2.0
//
// A procedure that is submitted over a network runs once, whatever the network loses, and whoever
// asks again.

#include "remote/remote_world.h"

namespace pv2::testing::remote_submit_test {
namespace {

using namespace std::chrono_literals;

// Has the type and the arguments of a job, and is no procedure: a client needs no more.
struct JobOfClient {
  static constexpr std::string_view kType = "test.Job";
  std::string name;
  void fields(auto& f) { f.arg(1, "name", name); }
};

struct UnknownJob {
  static constexpr std::string_view kType = "test.Unknown";
  std::string name;
  void fields(auto& f) { f.arg(1, "name", name); }
};

struct NewerJob {
  static constexpr std::string_view kType = "test.Job";
  std::string name = "a";
  std::uint32_t parcels = 3;
  void fields(auto& f) {
    f.arg(1, "name", name);
    f.arg(2, "parcels", parcels);
  }
};

template <class P>
SubmitOutcome submit_as(RemoteWorld& world, P procedure, RemoteSubmitOptions options = {}) {
  return world.answer<SubmitOutcome>(
      [&](auto done) { world.remote->submit(std::move(procedure), options, std::move(done)); });
}

}  // namespace

TEST_CASE("a procedure that is submitted from elsewhere runs, and its result comes back whole") {
  RemoteWorld world;
  world.begin();

  const SubmitOutcome submitted = world.submit("a");

  REQUIRE(words(submitted) == "OK");
  CHECK_FALSE(submitted.replayed);
  CHECK(submitted.nonce.value != 0);
  const auto remote = world.wait(submitted.id);
  REQUIRE(remote.status().to_string() == "OK");
  const ProcedureResult local = world.engine.result(submitted.id);
  CHECK(remote->id == local.id);
  CHECK(remote->state == local.state);
  CHECK(remote->status == local.status);
  CHECK(remote->result == local.result);
  CHECK(remote->bypassed == local.bypassed);
  CHECK(remote->submitted == local.submitted);
  CHECK(remote->finished == local.finished);
  CHECK(remote->result == "a done");
}

TEST_CASE("the failure of a procedure is its result, not a failure of the call that waits for it") {
  RemoteWorld world;
  world.engine.world.scripts["f"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
    return run.step == 2 ? std::optional(Say::fail("no parcel left")) : usual();
  }};
  world.begin();

  const auto result = world.wait(world.submit("f").id);

  REQUIRE(result.status().to_string() == "OK");
  CHECK(result->state == ProcedureState::kRolledBack);
  CHECK(result->status.to_string() == "FAILED_PRECONDITION: no parcel left");
}

TEST_CASE("two submissions under one nonce are one procedure, also if one of them was local") {
  RemoteWorld world;
  world.begin();

  const SubmitOutcome first = world.submit("a", {.nonce = {7, 1}});
  const SubmitOutcome second = world.submit("a", {.nonce = {7, 1}});
  const ProcedureId local = world.engine.submit("a", {.nonce = {7, 1}});
  const ProcedureId other = world.engine.submit("b", {.nonce = {7, 2}});
  const SubmitOutcome after_local = submit_as(world, JobOfClient{"b"}, {.nonce = {7, 2}});
  world.settle();

  CHECK(words(first) == "OK");
  CHECK(words(second) == "OK");
  CHECK(second.replayed);
  CHECK(second.id == first.id);
  CHECK(local == first.id);
  CHECK(words(after_local) == "OK");
  CHECK(after_local.id == other);
  CHECK(world.engine.journal().size() == 6);
}

TEST_CASE("a lost call and a lost answer are asked for again, and the procedure runs once") {
  RemoteWorld world;
  world.begin();
  const FrameKind lost = GENERATE(FrameKind::kCall, FrameKind::kReply);
  world.lose(lost, "pv2.submit", 3);

  const SubmitOutcome submitted = world.submit("a");

  CHECK(words(submitted) == "OK");
  CHECK(submitted.replayed == (lost == FrameKind::kReply));
  CHECK(world.faults->rules_left() == 0);
  world.settle();
  CHECK(world.count("do a.1") == 1);
}

TEST_CASE("a submission without an answer is unknown, and its nonce finds what became of it") {
  RemoteWorld world;
  world.begin();
  const FrameKind lost = GENERATE(FrameKind::kCall, FrameKind::kReply);
  world.lose(lost, "pv2.submit", 1000);

  const SubmitOutcome submitted = world.submit("a", {.timeout = 7s});

  CHECK(words(submitted) == "UNKNOWN DEADLINE_EXCEEDED");
  const auto found = world.find(submitted.nonce);
  if (lost == FrameKind::kReply) {
    REQUIRE(found.status().to_string() == "OK");
    CHECK(world.wait(*found)->result == "a done");
  } else {
    CHECK(found.status().code() == StatusCode::kNotFound);
  }
}

TEST_CASE("another process goes on with a submission of a client that died, and it is done once") {
  RemoteWorld world;
  world.begin();
  const FrameKind lost = GENERATE(FrameKind::kCall, FrameKind::kReply);
  const bool server_dies_too = GENERATE(false, true);
  world.lose(lost, "pv2.submit", 2);
  world.remote->submit(Job(world.engine.world, "a"), {.nonce = {7, 1}},
                       [](const SubmitOutcome&) {});
  world.settle();
  world.transport->run_for(3s);

  world.disconnect();
  if (server_dies_too) world.crash_server();
  world.connect();
  const SubmitOutcome resumed = world.resume({7, 1}, "a");

  CHECK(words(resumed) == "OK");
  CHECK(world.wait(resumed.id)->result == "a done");
  CHECK(*world.find({7, 1}) == resumed.id);
  CHECK(world.submit("a", {.nonce = {7, 1}}).id == resumed.id);
  if (!server_dies_too) CHECK(world.count("do a.1") == 1);
}

TEST_CASE("what cannot be submitted fails, keeps nothing, and leaves the nonce free") {
  RemoteWorld world;
  world.begin();
  const RemoteSubmitOptions keyed{.nonce = {7, 1}};

  CHECK(words(submit_as(world, UnknownJob{"a"}, keyed)) == "FAILED INVALID_ARGUMENT");
  CHECK(words(submit_as(world, NewerJob{}, keyed)) == "FAILED INVALID_ARGUMENT");
  const auto outcome = world.answer<CallOutcome>([&](auto done) {
    world.client->call("pv2.submit", "\xff\xff", {.nonce = {7, 1}}, std::move(done));
  });
  CHECK(words(outcome) == "FAILED INVALID_ARGUMENT");
  CHECK(world.engine.executor().inspect().live_procedures() == 0);

  CHECK(words(world.submit("a", keyed)) == "OK");
}

TEST_CASE("other arguments under a nonce that is known fail, and the first procedure goes on") {
  RemoteWorld world;
  world.begin();
  const SubmitOutcome first = world.submit("a", {.nonce = {7, 1}});

  CHECK(words(world.submit("b", {.nonce = {7, 1}})) == "FAILED KEY_REUSED");
  CHECK(words(world.resume({7, 1}, "b")) == "FAILED KEY_REUSED");

  CHECK(world.wait(first.id)->result == "a done");
  CHECK(world.count("do b.1") == 0);
}

TEST_CASE("a refusal says nothing of copies that were sent before") {
  RemoteWorld world;
  world.begin();

  CHECK(words(world.answer<SubmitOutcome>([&](auto done) {
          world.remote->resume({7, 1}, UnknownJob{"a"}, {}, std::move(done));
        })) == "UNKNOWN INVALID_ARGUMENT");
}

TEST_CASE("a nonce whose time has passed is not sent, and not begun if it arrives") {
  RemoteWorld world;
  world.begin();
  const WallTime now = world.engine.clock->wall_now();

  CHECK(words(world.submit("a", {.nonce = {7, 1}, .expires_at = now - 1s})).starts_with("FAILED"));
  world.lose(FrameKind::kCall, "pv2.submit", 1000);
  const SubmitOutcome late = world.submit("a", {.nonce = {7, 2}, .expires_at = now + 5s});
  CHECK(late.kind == SubmitOutcome::Kind::kUnknown);
  world.settle();

  CHECK(world.engine.journal().empty());
}

TEST_CASE("the owner of a submission is who the server has let in, whatever the client says") {
  RemoteWorld world;
  world.tokens = {{"token-of-ann-0123456789", "ann"}, {"token-of-bob-0123456789", "bob"}};
  world.token = world.tokens[0].token;
  world.begin();

  const SubmitOutcome by_ann = world.submit("w", {.nonce = {7, 1}});
  REQUIRE(words(by_ann) == "OK");
  CHECK(world.engine.describe(by_ann.id).owner == "ann");
  CHECK(world.engine.submit("w", {.nonce = {7, 1}, .owner = "ann"}) == by_ann.id);

  world.disconnect();
  world.token = world.tokens[1].token;
  world.connect();
  CHECK(words(world.submit("w", {.nonce = {7, 1}})) == "FAILED KEY_REUSED");

  CHECK(words(world.abort(by_ann.id, "not mine")) == "OK");
  world.settle();
  CHECK(world.engine.result(by_ann.id).status.message() == "aborted by bob: not mine");
}

TEST_CASE("a full executor is asked again, and takes the procedure when there is room") {
  RemoteWorld world;
  world.engine.max_live_procedures = 1;
  world.begin();
  const SubmitOutcome first = world.submit("w");
  REQUIRE(words(first) == "OK");

  const auto second = std::make_shared<std::optional<SubmitOutcome>>();
  world.remote->submit(Job(world.engine.world, "a"), {},
                       [second](SubmitOutcome outcome) { second->emplace(std::move(outcome)); });
  world.settle();
  CHECK_FALSE(second->has_value());
  REQUIRE(words(world.signal(first.id, "now")) == "OK");
  world.run_until([&] { return second->has_value(); });

  CHECK(words(**second) == "OK");
  CHECK_FALSE((*second)->replayed);
}

TEST_CASE("if the store fails while a submission is on its way, its outcome is unknown") {
  RemoteWorld world;
  world.begin();
  FaultStore& store = world.engine.faults();
  store.fail_commit(store.commits() + 1, Status(StatusCode::kIoError, "the disk is gone"));

  const SubmitOutcome on_its_way = world.submit("a", {.timeout = 5s});

  CHECK(on_its_way.kind == SubmitOutcome::Kind::kUnknown);
  // Nothing is begun any more; that is certain.
  const SubmitOutcome later = world.submit("a", {.timeout = 5s});
  CHECK(later.kind == SubmitOutcome::Kind::kFailed);
}

}  // namespace pv2::testing::remote_submit_test
