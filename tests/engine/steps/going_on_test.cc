// SPDX-License-Identifier: Apache-2.0
//
// With a store that keeps no records, a worker goes on with a procedure that is alone in its tree,
// step after step, and neither the scheduler nor another thread hears of it. Nothing is late for
// that reason: a stop, an abort, a signal, work of a higher class, another procedure that is ready,
// a worker that is idle. And listings show how far it has come.

#include <pv2/engine/state_machine_procedure.h>
#include <pv2/store/noop_procedure_store.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <semaphore>
#include <set>
#include <thread>

#include "model/looks.h"
#include "support/catch.h"
#include "support/engine_world.h"
#include "watch/state_audit.h"

namespace pv2::testing::going_on_test {
namespace {

enum class Leg { kLeft = 1, kRight = 2 };

// What the walks of one test share.
struct Paths {
  std::atomic<std::uint64_t> steps = 0;
  std::atomic<bool> may_end = false;
  std::function<void(StepContext& ctx)> at_each_step = [](StepContext&) {};

  void wait_for_steps(std::uint64_t more) {
    const std::uint64_t from = steps;
    for (std::uint64_t now = from; now < from + more; now = steps) steps.wait(now);
  }
};

// Walks from one leg to the other until it may end.
class Walk final : public StateMachineProcedure<Leg> {
 public:
  static constexpr std::string_view kType = "test.Walk";
  static constexpr auto kSteps =
      steps(step(Leg::kLeft, "LEFT", kNoUndo), step(Leg::kRight, "RIGHT", kNoUndo));

  explicit Walk(Paths& paths, bool is_meta = false) : paths_(paths), is_meta_(is_meta) {}
  void fields(auto& f) {
    f.arg(1, "is_meta", is_meta_);
    f(2, "walked", walked_);
  }
  LockSet locks() const override {
    return is_meta_ ? std::move(LockSet().meta(LockMode::kExclusive)) : LockSet();
  }
  Flow execute_from_state(Leg leg, StepContext& ctx) override {
    ++walked_;
    paths_.at_each_step(ctx);
    ++paths_.steps;
    paths_.steps.notify_all();
    if (paths_.may_end || is_meta_) return done();
    return next(leg == Leg::kLeft ? Leg::kRight : Leg::kLeft);
  }

 private:
  Paths& paths_;
  bool is_meta_;
  std::uint64_t walked_ = 0;
};

// Passes its point of no return with its first step, and walks on until it may end.
class Passage final : public StateMachineProcedure<Leg> {
 public:
  static constexpr std::string_view kType = "test.Passage";
  static constexpr auto kSteps =
      steps(step(Leg::kLeft, "PASS", kPointOfNoReturn), step(Leg::kRight, "WALK", kNoUndo));

  explicit Passage(Paths& paths) : paths_(paths) {}
  void fields(auto& f) { f(1, "walked", walked_); }
  Flow execute_from_state(Leg /*leg*/, StepContext& ctx) override {
    ++walked_;
    paths_.at_each_step(ctx);
    ++paths_.steps;
    paths_.steps.notify_all();
    return paths_.may_end ? done() : next(Leg::kRight);
  }

 private:
  Paths& paths_;
  std::uint64_t walked_ = 0;
};

enum class Begins { kAtOnce, kLater };

struct Ground {
  World world;
  Paths paths;
  std::unique_ptr<ProcedureExecutor> executor;

  explicit Ground(unsigned workers, Begins begins = Begins::kAtOnce) {
    ExecutorOptions options;
    options.store = noop();
    options.registry.add<Walk>(paths).add<Passage>(paths);
    world.scripts["short"] = {.steps = 3};
    world.scripts["parent"] = {.children = std::vector<std::string>(3, "short")};
    add_job_types(options.registry, world);
    options.workers = workers;
    options.log = {};
    executor = open_executor(std::move(options));
    if (begins == Begins::kAtOnce) executor->start();
  }
  ~Ground() { paths.may_end = true; }
  // How many steps the records of a walk say that it has made.
  std::uint64_t walked(ProcedureId id) const {
    const auto shown = executor->inspect().describe(id);
    REQUIRE(shown.ok());
    const std::size_t at = shown->fields.find_last_of("0123456789");
    REQUIRE(at != std::string::npos);
    const std::size_t from = shown->fields.find_last_not_of("0123456789", at) + 1;
    return std::stoull(shown->fields.substr(from));
  }
  ProcedureId submit(bool is_meta = false) {
    const auto submitted = executor->submit(Walk(paths, is_meta));
    REQUIRE(submitted.ok());
    return submitted->id;
  }
};

}  // namespace

TEST_CASE("the steps of a procedure that is alone are not published one by one") {
  Ground ground(1);
  const ProcedureId id = ground.submit();
  ground.paths.wait_for_steps(100);
  const std::uint64_t before = SectionLooks::of(*ground.executor).total;

  ground.paths.wait_for_steps(100'000);

  CHECK(SectionLooks::of(*ground.executor).total - before < 1'000);
  ground.paths.may_end = true;
  CHECK(ground.executor->wait(id)->status.ok());
}

TEST_CASE("what happens to other procedures waits for no worker that goes on with one") {
  constexpr int kLives = 100;
  Ground ground(1);
  const ProcedureId walk = ground.submit();
  ground.paths.wait_for_steps(100);
  const std::uint64_t before = SectionLooks::of(*ground.executor).wide;

  for (int i = 0; i < kLives; ++i) {
    const auto made = ground.executor->submit(Job(ground.world, i % 2 == 0 ? "short" : "parent"));
    REQUIRE(made.ok());
    REQUIRE(ground.executor->wait(made->id)->status.ok());
    REQUIRE(ground.executor->acknowledge(made->id).ok());
  }

  CHECK(SectionLooks::of(*ground.executor).wide - before < kLives / 2);
  ground.paths.may_end = true;
  CHECK(ground.executor->wait(walk)->status.ok());
}

TEST_CASE("whatever other threads do beside walks, all procedures come to their ends") {
  constexpr int kRounds = 100;
  Ground ground(2);
  ground.world.scripts["fails"] = {
      .steps = 2, .run = [](JobRun& run) -> std::optional<Outcome> {
        return run.step == 1 ? std::nullopt : std::optional(Say::fail("it is to fail"));
      }};
  std::vector<ProcedureId> walks;
  for (int i = 0; i < 4; ++i) walks.push_back(ground.submit());
  ground.paths.wait_for_steps(100);
  const auto each_round = [&](const auto& act) {
    return std::thread([&act] {
      for (int i = 0; i < kRounds; ++i) act(i);
    });
  };
  const auto live = [&](int i) {
    for (const char* const script : {"short", "parent", "fails"}) {
      const Nonce nonce{7, static_cast<std::uint64_t>(i) + 1};
      const auto made = ground.executor->submit(Job(ground.world, script), {.nonce = nonce});
      if (made.ok()) (void)ground.executor->wait(made->id);
      (void)ground.executor->find(nonce);
      if (made.ok()) (void)ground.executor->acknowledge(made->id);
    }
  };
  const auto order = [&](int i) {
    const ProcedureId id = ground.submit();
    (void)ground.executor->signal(id, "hello", std::to_string(i));
    (void)ground.executor->abort(id);
    (void)ground.executor->wait(id);
  };
  const auto look = [&](int i) {
    (void)ground.executor->inspect().live_procedures();
    (void)ground.executor->inspect().describe(walks[static_cast<std::size_t>(i) % walks.size()]);
    (void)ground.executor->inspect().locks();
  };

  std::vector<std::thread> threads;
  threads.push_back(each_round(live));
  threads.push_back(each_round(live));
  threads.push_back(each_round(order));
  threads.push_back(each_round(look));
  for (std::thread& thread : threads) thread.join();

  ground.paths.may_end = true;
  for (const ProcedureId id : walks) CHECK(ground.executor->wait(id)->status.ok());
  CHECK(StateAudit::of(*ground.executor).empty());
}

TEST_CASE("a stop ends a walk of steps that follow each other at once") {
  Ground ground(2);
  for (int i = 0; i < 3; ++i) ground.submit();
  ground.paths.wait_for_steps(1'000);

  ground.executor->stop();

  const std::uint64_t at_the_end = ground.paths.steps;
  CHECK(at_the_end >= 1'000);
  CHECK_FALSE(ground.paths.may_end);
}

TEST_CASE("a walk does not go on from a step during which the engine began to stop") {
  constexpr std::uint64_t kLast = 1'000;
  std::binary_semaphore may_stop{0};
  Ground ground(1);
  const auto is_stopping = [&] {
    std::optional<StatusCode> code;
    ground.executor->async(CallbackThread::kEngine)
        .find({1, 1}, [&](const Result<Submitted>& found) { code = found.status().code(); });
    return code == StatusCode::kStopping;
  };
  ground.paths.at_each_step = [&](StepContext&) {
    if (ground.paths.steps + 1 != kLast) return;
    may_stop.release();
    while (!is_stopping()) std::this_thread::yield();
  };
  ground.submit();
  may_stop.acquire();

  ground.executor->stop();

  CHECK(ground.paths.steps == kLast);
}

TEST_CASE("an abort ends a walk of steps that follow each other at once") {
  const unsigned workers = GENERATE(1U, 2U);
  Ground ground(workers);
  const ProcedureId stays = ground.submit();
  for (int i = 0; i < 50; ++i) {
    const ProcedureId id = ground.submit();
    ground.paths.wait_for_steps(100);
    REQUIRE(ground.executor->abort(id).to_string() == "OK");
    REQUIRE(ground.executor->wait(id)->state == ProcedureState::kRolledBack);
  }
  ground.paths.may_end = true;
  CHECK(ground.executor->wait(stays)->status.ok());
}

TEST_CASE("an abort of a walk beyond its point of no return is refused, and the walk goes on") {
  Ground ground(1);
  const auto submitted = ground.executor->submit(Passage(ground.paths));
  REQUIRE(submitted.ok());
  ground.paths.wait_for_steps(1'000);

  CHECK(ground.executor->abort(submitted->id).code() == StatusCode::kFailedPrecondition);

  CHECK(StateAudit::of(*ground.executor).empty());
  ground.paths.wait_for_steps(1'000);
  ground.paths.may_end = true;
  CHECK(ground.executor->wait(submitted->id)->status.ok());
}

TEST_CASE("a procedure that is submitted beside walks that fill the only worker has its turn") {
  Ground ground(1);
  for (int i = 0; i < 70; ++i) ground.submit();  // more than one run takes
  ground.paths.wait_for_steps(10'000);

  for (int i = 0; i < 20; ++i) {
    const ProcedureId meta = ground.submit(true);
    REQUIRE(ground.executor->wait(meta)->status.ok());
  }
  const ProcedureId late = ground.submit();
  while (ground.walked(late) < 100) ground.paths.wait_for_steps(100);
}

TEST_CASE("listings show how far a walk has come, and never a step back") {
  Ground ground(2);
  std::vector<ProcedureId> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(ground.submit());
  std::array<std::uint64_t, 4> seen{};
  while (*std::min_element(seen.begin(), seen.end()) < 10'000) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::uint64_t now = ground.walked(ids[i]);
      REQUIRE(now >= seen[i]);
      seen[i] = now;
    }
  }
}

TEST_CASE("a signal reaches a walk of steps that follow each other at once") {
  std::atomic<int> heard = 0;
  Ground ground(1);
  ground.paths.at_each_step = [&](StepContext& ctx) {
    if (ctx.signal("hello") == nullptr) return;
    ++heard;
    heard.notify_all();
  };
  const ProcedureId id = ground.submit();
  ground.paths.wait_for_steps(1'000);

  REQUIRE(ground.executor->signal(id, "hello").ok());

  heard.wait(0);
  ground.paths.may_end = true;
  CHECK(ground.executor->wait(id)->status.ok());
}

TEST_CASE("an idle worker takes a part of a walk that fills another worker") {
  std::mutex threads_mutex;
  std::set<std::thread::id> threads;
  Ground ground(2);
  ground.paths.at_each_step = [&](StepContext&) {
    const std::scoped_lock lock(threads_mutex);
    threads.insert(std::this_thread::get_id());
  };
  for (int i = 0; i < 8; ++i) ground.submit();
  for (;;) {
    ground.paths.wait_for_steps(1'000);
    const std::scoped_lock lock(threads_mutex);
    if (threads.size() == 2) break;
  }
}

TEST_CASE("a walk goes on while its worker works on another tree") {
  constexpr int kWide = 200;
  struct ShortSections {
    ShortSections() { Looks::pauses_at = 8; }
    ~ShortSections() { Looks::pauses_at = kSectionPauses; }
  } const short_sections;
  std::atomic<int> waiting = 0;
  std::atomic<int> pauses = 0;
  std::atomic<bool> one_waits = false;
  std::atomic<bool> is_over = false;
  Ground ground(2, Begins::kLater);
  ground.world.scripts["waits"] = {.run = [&](JobRun&) {
    if (++waiting % kWide == 0) waiting.notify_all();
    return Say::wait_for(std::chrono::hours(1));
  }};
  ground.world.scripts["wide"] = {.children = std::vector<std::string>(kWide, "waits")};
  SectionLooks::at_each_pause(*ground.executor, [&] {
    ++pauses;
    if (is_over || one_waits.exchange(true)) return;
    ground.paths.wait_for_steps(20);  // hangs if the walk stands still
    one_waits = false;
    one_waits.notify_all();
  });
  ground.executor->start();
  ground.submit();

  for (int i = 1; i <= 20; ++i) {
    const auto wide = ground.executor->submit(Job(ground.world, "wide"));
    REQUIRE(wide.ok());
    for (int seen = waiting; seen < i * kWide; seen = waiting) waiting.wait(seen);
    REQUIRE(ground.executor->abort(wide->id).ok());
    REQUIRE(ground.executor->wait(wide->id)->state == ProcedureState::kRolledBack);
  }
  is_over = true;
  one_waits.wait(true);
  REQUIRE(pauses > 0);
}

TEST_CASE("work of a higher class goes before the next step of a walk") {
  std::binary_semaphore step_runs{0};
  std::binary_semaphore may_end{0};
  std::atomic<bool> holds = true;
  std::vector<std::string> order;
  Ground ground(1);
  ground.paths.at_each_step = [&](StepContext&) {
    if (!holds) return;
    order.emplace_back("walk");
    step_runs.release();
    may_end.acquire();
  };
  ground.world.scripts["meta"] = {.steps = 1,
                                  .run = [&](JobRun&) -> std::optional<Outcome> {
                                    order.emplace_back("meta");
                                    holds = false;
                                    return std::nullopt;
                                  },
                                  .locks = LockSet().meta(LockMode::kExclusive)};
  ground.submit();
  step_runs.acquire();
  const auto meta = ground.executor->submit(Job(ground.world, "meta"));
  may_end.release();

  REQUIRE(ground.executor->wait(meta->id)->status.ok());
  REQUIRE(order == std::vector<std::string>{"walk", "meta"});
}

}  // namespace pv2::testing::going_on_test
