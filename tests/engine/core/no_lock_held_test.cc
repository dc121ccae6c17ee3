// SPDX-License-Identifier: Apache-2.0
//
// The engine holds none of its locks while it calls out: to the store, the log, steps, fields,
// constructors, destructors or callbacks. Whatever is called here calls back into the executor, on
// the same thread; with a lock held that thread would wait for itself, and the test would hang.

#include <map>

#include "support/engine_world.h"

namespace pv2::testing::no_lock_held_test {
namespace {

// Calls every thread-safe verb that does not block, from wherever touch() is called.
class Prober {
 public:
  explicit Prober(CallbackThread callbacks) : callbacks_(callbacks) {}
  void aim(ProcedureExecutor* executor) { executor_ = executor; }
  AsyncExecutor async() { return executor_->async(callbacks_); }
  void touch(const char* from) {
    // Callbacks answer these calls; without a bound they would keep the executor busy for ever.
    if (executor_ == nullptr || busy_ || touched[from] == 50) return;
    busy_ = true;
    ++touched[from];
    for (const ProcedureInfo& info : executor_->inspect().list()) {
      (void)executor_->inspect().describe(info.id);
      async().wait(info.id, [](const Result<ProcedureResult>&) {});
    }
    async().wait(ProcedureId{1}, [](const Result<ProcedureResult>&) {});
    async().acknowledge(ProcedureId{999'999}, [](const Status&) {});
    if (submit) submit();
    (void)executor_->inspect().locks();
    (void)executor_->inspect().explain(ProcedureId{1});
    (void)executor_->inspect().live_procedures();
    (void)executor_->health();
    busy_ = false;
  }

  std::map<std::string, int> touched;
  std::function<void()> submit;

 private:
  const CallbackThread callbacks_;
  ProcedureExecutor* executor_ = nullptr;
  bool busy_ = false;
};

// A store that touches the executor in every call.
class ProbingStore final : public ProcedureStore {
 public:
  ProbingStore(std::shared_ptr<MemoryDisk> disk, Prober& prober)
      : inner_(std::move(disk)), prober_(prober) {}

  std::string name() const override {
    prober_.touch("name");
    return inner_.name();
  }
  Status recover_lease(CommitSink& sink) override { return inner_.recover_lease(sink); }
  CommitAnswer commit(CommitRequest& request) override {
    prober_.touch("commit");
    return inner_.commit(request);
  }
  CommitAnswer commit_all(CommitList& requests) override {
    prober_.touch("commit_all");
    return inner_.commit_all(requests);
  }
  CommitAnswer queue_all(CommitList& requests) override {
    prober_.touch("queue_all");
    return inner_.queue_all(requests);
  }
  Written write_queued() override {
    prober_.touch("write_queued");
    return inner_.write_queued();
  }
  void wake_writer() override {
    prober_.touch("wake_writer");
    inner_.wake_writer();
  }
  Result<std::optional<std::string>> get(Space space, std::string_view key) override {
    prober_.touch("get");
    return inner_.get(space, key);
  }
  Status scan(Space space, std::string_view prefix, const RowVisitor& visit) override {
    return inner_.scan(space, prefix, visit);
  }
  bool keeps_records() const noexcept override { return true; }
  StoreLimits limits() const noexcept override {
    prober_.touch("limits");
    return inner_.limits();
  }
  bool pump() override {
    prober_.touch("pump");
    return inner_.pump();
  }
  void close() noexcept override {
    prober_.touch("close");
    inner_.close();
  }

 private:
  MemoryProcedureStore inner_;
  Prober& prober_;
};

enum class ProbeStep { kOne = 1, kTwo, kThree };

// A procedure that touches the executor in every member. "fail" fails after its child.
class Probe final : public StateMachineProcedure<ProbeStep> {
 public:
  static constexpr std::string_view kType = "test.Probe";
  static constexpr auto kSteps =
      steps(step(ProbeStep::kOne, "ONE", kUndoable), step(ProbeStep::kTwo, "TWO", kUndoable),
            step(ProbeStep::kThree, "THREE", kUndoable));
  explicit Probe(Prober& prober, std::string what = {}) : prober_(&prober), what_(std::move(what)) {
    prober_->touch("constructor");
  }
  Probe(Probe&& other) noexcept : prober_(other.prober_), what_(other.what_) {
    prober_->touch("move constructor");
  }
  ~Probe() override { prober_->touch("destructor"); }

  void fields(auto& f) {
    prober_->touch("fields");
    f.arg(1, "what", what_);
    f(2, "count", count_);
  }
  LockSet locks() const override {
    prober_->touch("locks");
    return LockSet().table("probe", what_, LockMode::kExclusive);
  }
  Priority priority() const override {
    prober_->touch("priority");
    return Priority::kHigh;
  }
  Flow execute_from_state(ProbeStep step, StepContext& ctx) override {
    prober_->touch("execute");
    ++count_;
    switch (step) {
      case ProbeStep::kOne: {
        const auto* value = ctx.offload([prober = prober_] {
          prober->touch("offload");
          return 1;
        });
        if (value == nullptr) return wait();
        (void)ctx.get_row("row");
        ctx.put_row("row", "value");
        return next(ProbeStep::kTwo);
      }
      case ProbeStep::kTwo:
        if (ctx.attempt() == 1) return retry(Status(StatusCode::kUnavailable, "once"));
        if (!what_.ends_with("child")) ctx.spawn(Probe(*prober_, what_ + " child"));
        return next(ProbeStep::kThree);
      case ProbeStep::kThree:
        (void)ctx.children();
        if (what_ == "fail") return fail(Status(StatusCode::kAborted, "as it was told"));
        return done();
    }
    return fail({});
  }
  Flow rollback_state(ProbeStep, StepContext&) override {
    prober_->touch("rollback");
    return undone();
  }

 private:
  Prober* prober_;
  std::string what_;
  int count_ = 0;
};

}  // namespace

TEST_CASE("no lock of the engine is held while user code, the store or the log is called") {
  Prober prober(GENERATE(CallbackThread::kPool, CallbackThread::kEngine));
  const auto disk = std::make_shared<MemoryDisk>();
  const auto clock = std::make_shared<ManualClock>();
  std::unique_ptr<ProcedureExecutor> executor;
  const auto open = [&] {
    ExecutorOptions options;
    options.store = std::make_unique<ProbingStore>(disk, prober);
    options.registry.add<Probe>(prober);
    options.workers = 0;
    options.clock = clock;
    options.max_results_in_memory = 1;
    options.log = [&](LogLevel, std::string_view) { prober.touch("log"); };
    options.on_store_failure = [&](const Status&) { prober.touch("on_store_failure"); };
    executor = open_executor(std::move(options));
    executor->start();
    prober.aim(executor.get());
  };
  const auto let_go = [&] {
    executor->stop();
    prober.aim(nullptr);
    executor.reset();
  };
  int submissions = 0;
  prober.submit = [&] {
    if (++submissions > 40) return;
    prober.async().submit(Probe(prober, "own " + std::to_string(submissions)),
                          {.nonce = {3, static_cast<std::uint64_t>(1 + submissions % 20)}},
                          [&](const Result<Submitted>&) { prober.touch("submit callback"); });
  };

  open();
  for (const char* what : {"one", "fail", "fail", "two"}) {
    prober.async().submit(Probe(prober, what), {}, [&](const Result<Submitted>& submitted) {
      prober.touch("submit callback");
      if (!submitted.ok()) return;
      prober.async().wait(submitted->id, [&](const Result<ProcedureResult>&) {
        prober.touch("wait callback");
        prober.async().acknowledge(ProcedureId{1},
                                   [&](const Status&) { prober.touch("acknowledge callback"); });
      });
    });
  }
  executor->run_until_idle(7);
  let_go();
  open();
  for (int i = 0; i < 100; ++i) {
    executor->run_until_idle();
    clock->advance(std::chrono::minutes(1));
  }
  CHECK(executor->inspect().live_procedures() == 0);

  REQUIRE(executor->submit(Probe(prober, "by a caller that waits")).ok());
  executor->run_until_idle();

  // A second owner fences this one: the next commit fails, and the log and the host are told.
  MemoryProcedureStore thief(disk);
  struct NoSink final : CommitSink {
    void on_committed(CommitList) noexcept override {}
  } no_sink;
  REQUIRE(thief.recover_lease(no_sink).ok());
  prober.async().submit(Probe(prober, "last"), {}, [](const Result<Submitted>&) {});
  executor->run_until_idle();
  CHECK_FALSE(executor->health().ok());
  let_go();

  for (const char* place :
       {"commit_all", "queue_all", "wake_writer", "get", "pump", "close", "log", "on_store_failure",
        "constructor", "destructor", "fields", "locks", "priority", "execute", "rollback",
        "offload", "submit callback", "wait callback", "acknowledge callback"}) {
    INFO(place);
    CHECK(prober.touched.contains(place));
  }
}

}  // namespace pv2::testing::no_lock_held_test
