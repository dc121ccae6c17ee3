// SPDX-License-Identifier: Apache-2.0
//
// Who publishes durable records while every worker is busy: a worker that soon comes out of its
// run, or the store's thread at once, or when it has written again. The test is the store's thread.

#include <pv2/scheduler/master_procedure_scheduler.h>
#include <pv2/store/memory_procedure_store.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/engine_world.h"
#include "support/wrapped_store.h"

namespace pv2::testing::who_publishes_test {
namespace {

using namespace std::chrono_literals;

constexpr int kMany = 100;  // more than are published before another thread could take them

// What happened, in order.
class Notes {
 public:
  void add(const std::string& what) {
    const std::scoped_lock lock(mutex_);
    all_.push_back(what);
  }
  void clear() {
    const std::scoped_lock lock(mutex_);
    all_.clear();
  }
  [[nodiscard]] std::vector<std::string> all() const {
    const std::scoped_lock lock(mutex_);
    return all_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> all_;
};

// Writes when the test says so, and says what the test wants it to say.
class HeldStore final : public WrappedStore, private CommitSink {
 public:
  HeldStore(std::unique_ptr<ProcedureStore> inner, Notes& notes)
      : WrappedStore(std::move(inner)), notes_(notes) {}

  Status recover_lease(CommitSink& sink) override {
    sink_ = &sink;
    return WrappedStore::recover_lease(*this);
  }
  Written write_queued() override {
    if (is_held_) {
      notes_.add("asked to write");
      return Written::kNothing;
    }
    return inner().pump() ? Written::kAll : Written::kNothing;
  }
  void wake_writer() override { notes_.add("told to write"); }

  // From now on only write() writes.
  void hold() { is_held_ = true; }
  void write(bool more_follows) {
    more_follows_ = more_follows;
    inner().pump();
  }

 private:
  void on_committed(CommitList finished) noexcept override {
    if (more_follows_) return sink_->on_committed_more_follows(std::move(finished));
    sink_->on_committed(std::move(finished));
  }

  Notes& notes_;
  CommitSink* sink_ = nullptr;
  std::atomic<bool> is_held_ = false;
  std::atomic<bool> more_follows_ = false;
};

// Notes that procedures became runnable: something was published.
class NotingScheduler final : public MasterProcedureScheduler {
 public:
  NotingScheduler(const Clock& clock, Notes& notes)
      : MasterProcedureScheduler(clock), notes_(notes) {}
  std::size_t settle(EntryList&& batch, SchedulerCaller caller) override {
    notes_.add("published");
    return MasterProcedureScheduler::settle(std::move(batch), caller);
  }

 private:
  Notes& notes_;
};

// One worker, which is in a step until the test releases it.
struct BusyWorker {
  World world;
  const std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  Notes notes;
  HeldStore* store = nullptr;
  FaultStore* faults = nullptr;
  std::unique_ptr<ProcedureExecutor> executor;
  std::latch inside{1};
  std::latch release{1};
  bool is_stopped = false;
  std::atomic<int> answers = 0;
  std::atomic<int> failed = 0;  // of them
  std::function<void()> on_answer = [] {};
  std::mutex answerers_mutex;
  std::set<std::thread::id> answerers;

  // With long steps the worker has had runs that took long.
  explicit BusyWorker(bool has_long_steps = false) {
    world.scripts["quick"] = {.steps = 1, .run = [this](JobRun&) -> std::optional<Outcome> {
                                notes.add("step");
                                return std::nullopt;
                              }};
    world.scripts["long"] = {.steps = 1, .run = [this](JobRun&) -> std::optional<Outcome> {
                               clock->advance(10ms);
                               return std::nullopt;
                             }};
    world.scripts["held"] = {.steps = 1, .run = [this](JobRun&) -> std::optional<Outcome> {
                               inside.count_down();
                               release.wait();
                               return std::nullopt;
                             }};
    auto inner = std::make_unique<FaultStore>(memory(std::make_shared<MemoryDisk>(), {}));
    faults = inner.get();
    auto held = std::make_unique<HeldStore>(std::move(inner), notes);
    store = held.get();
    ExecutorOptions options;
    options.store = std::move(held);
    options.scheduler = std::make_unique<NotingScheduler>(*clock, notes);
    add_job_types(options.registry, world);
    options.workers = 1;
    options.log = {};
    options.clock = clock;
    executor = open_executor(std::move(options));
    store->hold();
    executor->start();
    for (int i = 0; has_long_steps && i < 8; ++i) {
      submit("long", 1);
      write_until_nothing_is_live();
    }
    submit("held", 1);
    store->write(false);
    inside.wait();
    answers = 0;
    answerers.clear();
    notes.clear();
  }
  ~BusyWorker() {
    let_go();
    if (!is_stopped) write_until_nothing_is_live();
  }
  void stop() {
    executor->stop();
    is_stopped = true;
  }
  void let_go() {
    if (!release.try_wait()) release.count_down();
  }
  void write_until_nothing_is_live() {
    do {
      store->write(false);
    } while (executor->health().ok() && executor->inspect().live_procedures() != 0);
  }
  void submit(const std::string& name, int count) {
    for (int i = 0; i < count; ++i) {
      executor->async(CallbackThread::kEngine)
          .submit(Job(world, name), {}, [this](const Result<Submitted>& submitted) {
            {
              const std::scoped_lock lock(answerers_mutex);
              answerers.insert(std::this_thread::get_id());
            }
            on_answer();
            if (!submitted.ok()) ++failed;
            ++answers;
            answers.notify_all();
          });
    }
  }
  void wait_for_answers(int count) {
    for (int seen = answers; seen < count; seen = answers) answers.wait(seen);
  }
};

TEST_CASE("what is durable is left to a worker that comes out of its run if the store goes on") {
  BusyWorker busy;
  busy.submit("quick", kMany);
  busy.store->write(true);
  REQUIRE(busy.answers == 0);

  busy.let_go();
  busy.wait_for_answers(kMany);

  CHECK(busy.answerers.size() == 1);
  CHECK_FALSE(busy.answerers.contains(std::this_thread::get_id()));
  // It publishes before it does anything else, but first sees to its own record.
  const std::vector<std::string> happened = busy.notes.all();
  REQUIRE(happened.size() >= 2);
  CHECK(happened[0] == "told to write");
  CHECK(happened[1] == "published");
}

TEST_CASE("what was left is published after the next write, if no worker has come") {
  const bool more_follows = GENERATE(false, true);
  BusyWorker busy;
  busy.submit("quick", kMany);
  busy.store->write(true);
  busy.submit("quick", kMany);
  busy.store->write(more_follows);

  CHECK(busy.answers == 2 * kMany);
  CHECK(busy.answerers == std::set{std::this_thread::get_id()});
}

TEST_CASE("nothing is left if the store need not write again") {
  constexpr int kLong = 300;  // an idle worker would get it
  BusyWorker busy;
  busy.submit("quick", kLong);
  busy.store->write(false);
  CHECK(busy.answers == kLong);
}

TEST_CASE("a few records are published at once") {
  BusyWorker busy;
  busy.submit("quick", 7);
  busy.store->write(true);
  CHECK(busy.answers == 7);
}

TEST_CASE("nothing is left to a worker whose runs take long") {
  BusyWorker busy(/*has_long_steps=*/true);
  busy.submit("quick", kMany);
  busy.store->write(true);
  CHECK(busy.answers == kMany);
}

TEST_CASE("a worker runs steps between two lists that it publishes, if the store goes on") {
  BusyWorker busy;
  busy.submit("quick", kMany);
  busy.store->write(true);
  busy.submit("quick", kMany);
  // The next list comes while the worker publishes this one.
  busy.on_answer = [&] {
    if (busy.answers == 0) busy.store->write(true);
    if (busy.answers == kMany) busy.notes.add("second list");
  };
  busy.let_go();
  busy.wait_for_answers(2 * kMany);

  const std::vector<std::string> happened = busy.notes.all();
  const auto second = std::find(happened.begin(), happened.end(), "second list");
  REQUIRE(second != happened.end());
  CHECK(std::find(happened.begin(), second, "step") != second);
}

TEST_CASE("what was left before a failure is published as durable, and the rest as failed") {
  BusyWorker busy;
  busy.submit("quick", kMany);
  busy.store->write(true);
  busy.faults->fail_commit(busy.faults->commits() + 1, Status(StatusCode::kIoError, "gone"));
  busy.submit("quick", 1);
  busy.store->write(false);

  CHECK(busy.answers == kMany + 1);
  CHECK(busy.failed == 1);
}

TEST_CASE("what was left is published before a stop ends") {
  BusyWorker busy;
  busy.submit("quick", kMany);
  busy.store->write(true);
  busy.let_go();
  busy.stop();

  CHECK(busy.answers == kMany);
  CHECK(busy.failed == 0);
}

}  // namespace
}  // namespace pv2::testing::who_publishes_test
