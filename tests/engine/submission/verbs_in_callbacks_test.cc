// SPDX-License-Identifier: Apache-2.0
//
// Callbacks on the engine's own threads submit and acknowledge, and the store keeps no records. The
// engine judges these calls after the callbacks have returned: in the order of the calls, and it
// loses none. find(), inspect() and a run within the callback see them at once.

#include <pv2/store/noop_procedure_store.h>

#include <functional>
#include <latch>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.h"
#include "support/engine_world.h"

namespace pv2::testing::verbs_in_callbacks_test {
namespace {

// Looks at the executor when it is destroyed. That takes the mutex of its state.
class Looker final : public Procedure {
 public:
  static constexpr std::string_view kType = "test.Looker";
  explicit Looker(ProcedureExecutor*& executor) : executor_(&executor) {}
  Looker(Looker&& other) noexcept : executor_(std::exchange(other.executor_, nullptr)) {}
  ~Looker() override {
    if (executor_ != nullptr && *executor_ != nullptr) {
      (void)(*executor_)->inspect().live_procedures();
    }
  }
  void fields(auto& /*f*/) {}
  Outcome execute(StepContext& /*ctx*/) override { return done(); }

 private:
  ProcedureExecutor** executor_;
};

struct Ground {
  World world;
  ProcedureExecutor* open = nullptr;  // set between the start and the end of `executor`
  std::unique_ptr<ProcedureExecutor> executor;

  explicit Ground(unsigned workers) {
    ExecutorOptions options;
    options.store = noop();
    world.scripts["a"] = {};
    world.scripts["b"] = {};
    add_job_types(options.registry, world);
    options.registry.add<Looker>(open);
    options.workers = workers;
    options.log = {};
    executor = open_executor(std::move(options));
    executor->start();
    open = executor.get();
  }
  ~Ground() {
    open = nullptr;
    executor.reset();
  }
  Ground(const Ground&) = delete;
  Ground& operator=(const Ground&) = delete;

  [[nodiscard]] AsyncExecutor async() const { return executor->async(CallbackThread::kEngine); }
  // Runs `work` in a callback on this thread.
  void in_callback(const std::function<void()>& work) const {
    bool ran = false;
    async().acknowledge(ProcedureId{7'777'777}, [&](const Status&) {
      work();
      ran = true;
    });
    REQUIRE(ran);
  }
};

}  // namespace

TEST_CASE("what one callback submits is judged in the order of its calls") {
  Ground ground(0);
  std::vector<std::string> answers;
  const auto note = [&](std::string what) {
    return [&answers, what = std::move(what)](const Result<Submitted>& answer) {
      answers.push_back(what + ": " +
                        (answer.ok() ? answer->replayed ? "replayed" : "new"
                                     : std::string(to_string(answer.status().code()))));
    };
  };
  ground.in_callback([&] {
    ground.async().submit(Job(ground.world, "a"), {.nonce = {1, 1}}, note("first"));
    ground.async().submit(Job(ground.world, "a"), {.nonce = {1, 1}}, note("again"));
    ground.async().submit(Job(ground.world, "b"), {.nonce = {1, 1}}, note("other"));
    ground.async().find({1, 1}, note("found"));
    ground.async().find({1, 2}, note("not there"));
    ground.async().submit(Job(ground.world, "unheard of"), {.owner = std::string(70'000, 'x')},
                          note("refused"));
    REQUIRE(answers.empty());
  });
  // A refusal is known first. Those that join the first submission have their answer with it.
  REQUIRE(answers == std::vector<std::string>{"other: KEY_REUSED", "first: new", "again: replayed",
                                              "found: replayed", "not there: NOT_FOUND",
                                              "refused: INVALID_ARGUMENT"});
  ground.executor->run_until_idle();
  CHECK(ground.executor->inspect().live_procedures() == 0);
}

TEST_CASE("a callback that acknowledges a result may submit with its nonce again") {
  Ground ground(0);
  std::vector<bool> replayed;
  const auto submit = [&](ResultCallback ended) {
    ground.async().submit(Job(ground.world, "a"), {.nonce = {1, 1}},
                          [&, ended](const Result<Submitted>& answer) {
                            REQUIRE(answer.ok());
                            replayed.push_back(answer->replayed);
                            ground.async().wait(answer->id, ended);
                          });
  };
  int acknowledged = 0;
  submit([&](const Result<ProcedureResult>& first) {
    REQUIRE(first.ok());
    submit([](const Result<ProcedureResult>&) {});  // before: a duplicate
    ground.async().acknowledge(first->id, [&](const Status& done) { acknowledged += done.ok(); });
    ground.async().acknowledge(first->id, [&](const Status& done) { acknowledged += done.ok(); });
    submit([](const Result<ProcedureResult>&) {});  // behind: a new one
  });
  ground.executor->run_until_idle();
  REQUIRE(replayed == std::vector<bool>{false, true, false});
  // The second acknowledgement was judged when the first had taken effect.
  CHECK(acknowledged == 1);
}

TEST_CASE("a run of the engine within a callback runs what the callback has submitted") {
  Ground ground(0);
  bool ended = false;
  ground.in_callback([&] {
    ground.async().execute(Job(ground.world, "a"), {},
                           [&](const Result<ProcedureResult>& result) { ended = result.ok(); });
    ground.executor->run_until_idle();
    CHECK(ground.executor->inspect().live_procedures() == 0);
  });
  REQUIRE(ended);
}

TEST_CASE("an object that a callback submits in vain is destroyed with nothing locked") {
  Ground ground(0);
  int answered = 0;
  const auto count = [&](const Result<Submitted>&) { ++answered; };
  ground.in_callback([&] {
    ground.async().submit(Looker(ground.open), {.nonce = {1, 1}}, count);
    ground.async().submit(Looker(ground.open), {.nonce = {1, 1}}, count);  // a duplicate
    ground.async().submit(Job(ground.world, "a"), {.nonce = {1, 2}}, count);
    ground.async().submit(Looker(ground.open), {.nonce = {1, 2}}, count);  // KEY_REUSED
    ground.async().submit(Looker(ground.open), {.delay = std::chrono::hours(1)}, count);
  });
  REQUIRE(answered == 5);
}

TEST_CASE("callbacks that submit without an end let their thread go") {
  Ground ground(GENERATE(0U, 1U));
  std::atomic<bool> enough = false;
  std::latch ended{1};
  int called = 0;
  int depth = 0;
  int deepest = 0;
  std::function<void(Result<Submitted>)> again = [&](const Result<Submitted>&) {
    deepest = std::max(deepest, ++depth);
    ++called;
    const bool goes_on = !enough || called < 10'000;
    if (goes_on) ground.async().submit(Job(ground.world, "a"), {.nonce = {1, 1}}, again);
    --depth;
    if (!goes_on) ended.count_down();
  };
  ground.async().submit(Job(ground.world, "a"), {.nonce = {1, 1}}, again);
  enough = true;
  ground.executor->run_until_idle();
  ended.wait();
  REQUIRE(deepest == 1);
}

TEST_CASE("submissions in callbacks are refused after a stop, and all are answered") {
  Ground ground(0);
  std::map<StatusCode, int> answers;
  ground.async().submit(Job(ground.world, "a"), {}, [&](const Result<Submitted>& submitted) {
    ground.async().wait(submitted->id, [&](const Result<ProcedureResult>& result) {
      CHECK(result.status().code() == StatusCode::kStopping);
      for (int i = 0; i < 3; ++i) {
        ground.async().submit(Job(ground.world, "a"), {}, [&](const Result<Submitted>& answer) {
          ++answers[answer.status().code()];
        });
      }
    });
  });
  ground.open = nullptr;
  ground.executor->stop();
  REQUIRE(answers == std::map<StatusCode, int>{{StatusCode::kStopping, 3}});
}

TEST_CASE(
    "a host that goes on after each refusal of a stop needs no more stack than one callback") {
  const CallbackThread callbacks = GENERATE(CallbackThread::kPool, CallbackThread::kEngine);
  Ground ground(1);
  ground.open = nullptr;
  ground.executor->stop();
  constexpr int kCalls = 5'000;
  int called = 0;
  int depth = 0;
  int deepest = 0;
  std::function<void(Result<ProcedureResult>)> again = [&](const Result<ProcedureResult>&) {
    deepest = std::max(deepest, ++depth);
    if (++called < kCalls) {
      ground.executor->async(callbacks).execute(Job(ground.world, "a"), {}, again);
    }
    --depth;
  };
  ground.executor->async(callbacks).execute(Job(ground.world, "a"), {}, again);
  REQUIRE(called == kCalls);
  REQUIRE(deepest == 1);
}

}  // namespace pv2::testing::verbs_in_callbacks_test
