// SPDX-License-Identifier: Apache-2.0
//
// User code that throws in places that other files do not test: at load, while a step is recorded,
// and while a child is spawned. One procedure fails or backs off, and the others go on. (A
// destructor cannot throw: that of Procedure is noexcept, so a derived one that may throw does not
// compile.)

#include <functional>
#include <optional>
#include <type_traits>

#include "support/engine_world.h"

namespace pv2::testing::throwing_code_test {
namespace {

using namespace std::chrono_literals;

enum class Place { kNowhere, kConstructor, kDecode, kEncode, kLocks, kPriority, kAwait };

// Throws where `place` says, once it has been told to.
class Brittle final : public Procedure {
 public:
  static constexpr std::string_view kType = "test.Brittle";
  explicit Brittle(const Place& place) : place_(place) { throw_at(Place::kConstructor); }
  void fields(auto& f) {
    throw_at(Place::kDecode);
    if (ran_) throw_at(Place::kEncode);
    f(1, "note", note_);
  }
  LockSet locks() const override {
    throw_at(Place::kLocks);
    return {};
  }
  Priority priority() const override {
    throw_at(Place::kPriority);
    return Priority::kNormal;
  }
  Outcome execute(StepContext& ctx) override {
    ran_ = true;
    note_ = "changed";
    if (place_ == Place::kAwait) {
      ctx.await<int>([this](const auto&) { throw_at(Place::kAwait); });
    }
    return done("ended");
  }
  Outcome rollback(StepContext&) override { return undone(); }

 private:
  void throw_at(Place place) const {
    if (place_ == place) throw std::runtime_error("thrown by the test");
  }

  const Place& place_;
  std::string note_;
  bool ran_ = false;
};
static_assert(std::is_nothrow_destructible_v<Brittle>);

// Options with that type. Registration makes an object of it, so `place` is kNowhere until then.
ExecutorOptions with_brittle(EngineWorld& engine, const Place& place) {
  ExecutorOptions options = engine.options();
  options.registry.add<Brittle>(place);
  return options;
}

// A value that throws at the move after `moves` others.
struct Fragile {
  explicit Fragile(int& left) : moves(&left) {}
  Fragile(Fragile&& other) : moves(other.moves) {
    if ((*moves)-- == 0) throw std::runtime_error("broken on the way");
  }
  Fragile& operator=(Fragile&&) = delete;
  Fragile(const Fragile&) = delete;
  Fragile& operator=(const Fragile&) = delete;
  ~Fragile() = default;
  int* moves;
};

// Its constructor throws while it is broken; its step is `run`.
struct Breakable final : Procedure {
  struct Host {
    bool is_broken = false;
    std::function<Outcome(StepContext&)> run;
  };
  static constexpr std::string_view kType = "test.Breakable";
  explicit Breakable(const Host& of) : host(of) {
    if (host.is_broken) throw std::runtime_error("broken");
  }
  void fields(auto& /*f*/) {}
  Outcome execute(StepContext& ctx) override { return host.run(ctx); }
  Outcome rollback(StepContext&) override { return undone(); }
  const Host& host;
};

ExecutorOptions with_breakable(EngineWorld& engine, const Breakable::Host& host) {
  ExecutorOptions options = engine.options();
  options.registry.add<Breakable>(host);
  return options;
}

}  // namespace

TEST_CASE("a procedure that throws while it is made from its record backs off and ends well") {
  const Place where = GENERATE(Place::kConstructor, Place::kDecode);
  Place place = Place::kNowhere;
  EngineWorld engine;
  engine.world.scripts["other"] = {};
  engine.open(with_brittle(engine, place));
  const auto id = engine.executor().submit(Brittle(place))->id;

  ExecutorOptions next = with_brittle(engine, place);
  place = where;
  engine.open(std::move(next));
  CHECK_FALSE(engine.describe(id).quarantined);
  const ProcedureId other = engine.submit("other");
  engine.run();
  const ProcedureInfo info = engine.describe(id);
  CHECK_FALSE(info.quarantined);
  CHECK(info.state == ProcedureState::kWaitingTimeout);
  CHECK(info.attempt == 1);  // the step was not called
  CHECK_THAT(info.error.to_string(), ContainsSubstring("thrown by the test"));
  CHECK_FALSE(info.fields_error.ok());  // a listing makes an object too
  CHECK(engine.result(other).status.ok());

  place = Place::kNowhere;
  engine.crash_and_open();  // without the type: quarantined, and untouched
  engine.open(with_brittle(engine, place));
  engine.run_to_the_end();
  CHECK(engine.result(id).result == "ended");
}

TEST_CASE("one throw in a constructor costs a back-off and no attempt at the step") {
  const Place where = GENERATE(Place::kConstructor, Place::kDecode);
  Place place = Place::kNowhere;
  EngineWorld engine;
  ExecutorOptions options = with_brittle(engine, place);
  options.retry.max_attempts = 1;  // at the step
  engine.open(std::move(options));
  const auto id = engine.executor().submit(Brittle(place), {.delay = std::chrono::seconds(1)})->id;
  ExecutorOptions again = with_brittle(engine, place);
  again.retry.max_attempts = 1;
  engine.open(std::move(again));  // so that there is no object
  place = where;
  engine.advance(std::chrono::seconds(1));
  CHECK(engine.describe(id).state == ProcedureState::kWaitingTimeout);
  CHECK_FALSE(engine.describe(id).parked);
  const auto history = *engine.executor().inspect().history(id);
  REQUIRE(history.size() == 1);
  CHECK(history[0].outcome == Outcome::Kind::kRetry);
  CHECK(history[0].attempt == 1);

  place = Place::kNowhere;
  engine.advance(std::chrono::seconds(2));
  CHECK(engine.result(id).result == "ended");
}

TEST_CASE("a constructor that goes on throwing parks its procedure, and retry_now lets it go on") {
  const Place where = GENERATE(Place::kConstructor, Place::kDecode);
  Place place = Place::kNowhere;
  EngineWorld engine;
  engine.open(with_brittle(engine, place));
  const auto id = engine.executor().submit(Brittle(place))->id;
  ExecutorOptions next = with_brittle(engine, place);
  next.retry.undo_attempts = 4;
  place = where;
  engine.open(std::move(next));
  for (int i = 0; i < 4; ++i) {
    CHECK_FALSE(engine.describe(id).parked);
    engine.run();
    engine.clock->advance(std::chrono::minutes(1));
  }
  ProcedureInfo info = engine.describe(id);
  CHECK(info.parked);
  CHECK_FALSE(info.quarantined);
  CHECK_THAT(info.error.to_string(), ContainsSubstring("4 attempts to begin it, at step EXECUTE"));
  CHECK_THAT(info.error.to_string(), ContainsSubstring("thrown by the test"));

  CHECK(engine.executor().operate().retry_now(id, {.who = "anna", .why = "mended"}).ok());
  engine.run();  // it still throws: a back-off again, with as many attempts as before
  CHECK_FALSE(engine.describe(id).parked);
  place = Place::kNowhere;
  CHECK(engine.executor().operate().retry_now(id, {.who = "anna", .why = "mended"}).ok());
  engine.run();
  CHECK(engine.result(id).result == "ended");
}

TEST_CASE(
    "a member whose constructor throws in its undo backs off, parks, and ends after retry_now") {
  const Place where = GENERATE(Place::kConstructor, Place::kDecode);
  const bool once = GENERATE(true, false);
  Place place = Place::kNowhere;
  EngineWorld engine;
  ExecutorOptions options = with_brittle(engine, place);
  options.retry.undo_attempts = 3;
  engine.world.scripts["p"] = {.steps = 3, .run = [&place](JobRun& run) -> std::optional<Outcome> {
                                 if (run.step == 2) run.ctx.spawn(Brittle(place));
                                 if (run.step == 3) return Say::fail("no");
                                 return std::nullopt;
                               }};
  engine.open(std::move(options));
  const ProcedureId root = engine.submit("p");
  while (engine.executor().inspect().list().size() < 2) engine.executor().run_until_idle(1);
  const ProcedureId child{root.value + 1};
  while (engine.describe(child).state != ProcedureState::kSuccess) {
    engine.executor().run_until_idle(1);
  }
  place = where;  // the child is to be undone, and its object is gone
  engine.run();
  CHECK_FALSE(engine.describe(root).quarantined);
  CHECK_FALSE(engine.describe(root).parked);
  if (!once) {
    for (int i = 0; i < 3; ++i) engine.advance(std::chrono::minutes(1));
    const ProcedureInfo info = engine.describe(child);
    CHECK(info.parked);
    CHECK_FALSE(info.quarantined);
    CHECK_THAT(info.error.to_string(), ContainsSubstring("cannot undo step EXECUTE"));
    CHECK_THAT(info.error.to_string(), ContainsSubstring("3 attempts to begin it"));
    CHECK_THAT(info.error.to_string(), ContainsSubstring("thrown by the test"));
  }
  place = Place::kNowhere;
  CHECK(engine.executor()
            .operate()
            .retry_now(once ? child : root, {.who = "anna", .why = "mended"})
            .ok());
  engine.run();
  CHECK(engine.result(root).state == ProcedureState::kRolledBack);
  CHECK(engine.result(root).status.message() == "no");
}

TEST_CASE("an exception while a step runs or is recorded fails that procedure and no other") {
  const Place where = GENERATE(Place::kEncode, Place::kAwait);
  Place place = Place::kNowhere;
  EngineWorld engine;
  engine.world.scripts["other"] = {};
  engine.open(with_brittle(engine, place));
  const auto id = engine.executor().submit(Brittle(place))->id;
  const ProcedureId other = engine.submit("other");
  place = where;
  engine.run();

  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK_THAT(engine.result(id).status.to_string(), ContainsSubstring("thrown by the test"));
  CHECK(engine.result(other).status.ok());
}

TEST_CASE("an exception whose text is a null pointer fails the step that throws it") {
  struct Silent final : std::exception {
    [[nodiscard]] const char* what() const noexcept override { return nullptr; }
  };
  EngineWorld engine;
  engine.world.scripts["p"] = {.run = [](JobRun&) -> std::optional<Outcome> { throw Silent(); }};
  engine.open();
  const ProcedureId id = engine.submit("p");
  engine.run();

  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK_THAT(engine.result(id).status.to_string(), ContainsSubstring("says nothing"));
}

TEST_CASE("an exception of a child while it is spawned fails the step that spawns it") {
  const Place where = GENERATE(Place::kDecode, Place::kLocks, Place::kPriority);
  Place place = Place::kNowhere;
  EngineWorld engine;
  engine.world.scripts["p"] = {.run = [&place, where](JobRun& run) -> std::optional<Outcome> {
    if (run.step != 2) return std::nullopt;
    Brittle child(place);
    place = where;
    run.ctx.spawn(std::move(child));
    return std::nullopt;
  }};
  engine.open(with_brittle(engine, place));
  const ProcedureId id = engine.submit("p");
  engine.run();

  CHECK(engine.result(id).state == ProcedureState::kRolledBack);
  CHECK_THAT(engine.result(id).status.to_string(), ContainsSubstring("thrown by the test"));
  CHECK(engine.executor().inspect().list().empty());
  CHECK(engine.disk->rows() - engine.disk->rows(Space::kEngine, "schema:") == 1 + 2);
}

TEST_CASE("a value that cannot be moved into a step's wait may be sent again") {
  for (int moves = 0; moves < 6; ++moves) {
    CAPTURE(moves);
    EngineWorld engine;
    std::optional<Completion<Fragile>> asked;
    engine.world.scripts["a"] = {
        .steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
          const auto* value = run.ctx.await<Fragile>([&](auto completion) { asked = completion; });
          return value == nullptr ? std::optional(Say::wait()) : std::nullopt;
        }};
    engine.open();
    const ProcedureId id = engine.submit("a");
    engine.run();
    int left = moves;
    try {
      (*asked)(Fragile(left));
    } catch (const std::runtime_error&) {
      left = 1000;
      (*asked)(Fragile(left));
    }
    engine.run();
    CHECK(engine.executor().inspect().live_procedures() == 0);
    CHECK(engine.result(id).status.ok());
  }
}

TEST_CASE("offloaded work whose value cannot be moved ends, with an error") {
  for (int moves = 0; moves < 12; ++moves) {
    CAPTURE(moves);
    EngineWorld engine;
    Status error;
    engine.world.scripts["a"] = {.steps = 1, .run = [&](JobRun& run) -> std::optional<Outcome> {
                                   int left = moves;
                                   const auto* value =
                                       run.ctx.offload([left]() mutable { return Fragile(left); });
                                   if (value == nullptr) return Say::wait();
                                   error = value->status();
                                   return std::nullopt;
                                 }};
    engine.open();
    const ProcedureId id = engine.submit("a");
    engine.run();
    CHECK(engine.executor().inspect().live_procedures() == 0);
    CHECK(engine.result(id).status.ok());
    if (!error.ok()) CHECK_THAT(error.to_string(), ContainsSubstring("broken on the way"));
    if (moves == 0) CHECK_FALSE(error.ok());
  }
}

TEST_CASE("one throw in a constructor does not move the deadline of the wait before it") {
  const bool has_passed = GENERATE(false, true);
  EngineWorld engine;
  Breakable::Host host;
  std::optional<Completion<int>> kept;
  host.run = [&](StepContext& ctx) {
    if (ctx.timed_out()) return Say::done("timed out");
    (void)ctx.await<int>([&](const Completion<int>& completion) { kept = completion; });
    return Say::wait_for(1h);
  };
  engine.open(with_breakable(engine, host));
  const ProcedureId id = engine.executor().submit(Breakable(host))->id;
  engine.run();

  engine.advance(has_passed ? 59min : 30min);
  host.is_broken = true;
  if (!has_passed) (*kept)(1);
  engine.advance(1min);
  CHECK(engine.executor().inspect().history(id)->back().outcome == Outcome::Kind::kRetry);
  host.is_broken = false;
  engine.advance(1min);
  if (!has_passed) {
    CHECK(engine.executor().inspect().live_procedures() == 1);
    engine.advance(27min);
    CHECK(engine.executor().inspect().live_procedures() == 1);
    engine.advance(1min);
  }
  CHECK(engine.result(id).result == "timed out");
}

TEST_CASE("work is told to stop when its step is given up because a constructor throws") {
  EngineWorld engine;
  Breakable::Host host;
  Event event;
  int begun = 0;
  bool was_told = false;
  host.run = [&](StepContext& ctx) {
    const auto* const value = ctx.offload([&](const std::stop_token& stop) {
      if (++begun != 1) return;
      host.is_broken = true;
      event.set();
      engine.run();  // the step runs again, and cannot begin
      host.is_broken = false;
      was_told = stop.stop_requested();
    });
    if (value != nullptr) return Say::done("worked");
    (void)ctx.await(event);
    return Say::wait();
  };
  engine.open(with_breakable(engine, host));
  const ProcedureId id = engine.executor().submit(Breakable(host))->id;
  engine.run_to_the_end();

  CHECK(was_told);
  CHECK(begun == 2);
  CHECK(engine.result(id).result == "worked");
}

}  // namespace pv2::testing::throwing_code_test
