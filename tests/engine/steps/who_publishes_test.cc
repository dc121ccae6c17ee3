// SPDX-License-Identifier: Apache-2.0
//
// Who publishes a long list of durable records while every worker is busy: a worker that soon comes
// out of its run, or the store's thread at once, or when it has written again. The test is the
// store's thread.

#include <pv2/store/memory_procedure_store.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "support/engine_world.h"
#include "support/wrapped_store.h"

namespace pv2::testing::who_publishes_test {
namespace {

using namespace std::chrono_literals;

constexpr int kLong = 300;  // a list that is worth another thread

// Writes when the test says so, and says what the test wants it to say.
class HeldStore final : public WrappedStore, private CommitSink {
 public:
  HeldStore() : WrappedStore(memory(std::make_shared<MemoryDisk>(), {})) {}

  Status recover_lease(CommitSink& sink) override {
    sink_ = &sink;
    return WrappedStore::recover_lease(*this);
  }
  Written write_queued() override {
    if (is_held_) return Written::kNothing;
    return inner().pump() ? Written::kAll : Written::kNothing;
  }
  CommitAnswer queue_all(CommitList& requests) override {
    owes() = true;
    return inner().queue_all(requests);
  }
  void wake_writer() override { owes() = false; }

  // From now on only write() writes.
  void hold() { is_held_ = true; }
  void write(bool more_follows) {
    more_follows_ = more_follows;
    inner().pump();
  }
  // Whether this thread has queued requests and has told nobody yet.
  static bool& owes() {
    thread_local bool owes = false;
    return owes;
  }

 private:
  void on_committed(CommitList finished) noexcept override {
    if (more_follows_) return sink_->on_committed_more_follows(std::move(finished));
    sink_->on_committed(std::move(finished));
  }

  CommitSink* sink_ = nullptr;
  bool is_held_ = false;
  bool more_follows_ = false;
};

// One worker, which is in a step until the test releases it.
struct BusyWorker {
  World world;
  const std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  HeldStore* store = nullptr;
  std::unique_ptr<ProcedureExecutor> executor;
  std::latch inside{1};
  std::latch release{1};
  std::atomic<int> answers = 0;
  std::atomic<int> early = 0;  // answers from a thread that owed a wake
  std::mutex answerers_mutex;
  std::set<std::thread::id> answerers;

  // With long steps the worker has had runs that took long.
  explicit BusyWorker(bool has_long_steps = false) {
    world.scripts["quick"] = {.steps = 1};
    world.scripts["long"] = {.steps = 1, .run = [this](JobRun&) -> std::optional<Outcome> {
                               clock->advance(10ms);
                               return std::nullopt;
                             }};
    world.scripts["held"] = {.steps = 1, .run = [this](JobRun&) -> std::optional<Outcome> {
                               inside.count_down();
                               release.wait();
                               return std::nullopt;
                             }};
    auto held = std::make_unique<HeldStore>();
    store = held.get();
    ExecutorOptions options;
    options.store = std::move(held);
    add_job_types(options.registry, world);
    options.workers = 1;
    options.log = {};
    options.clock = clock;
    executor = open_executor(std::move(options));
    store->hold();
    executor->start();
    if (has_long_steps) {
      // A run says what the next one will take, and is measured from step to step.
      for (int i = 0; i < 8; ++i) {
        submit("long", 2);
        const int before = answers;
        write_until([&] { return answers == before + 2; });
        write_until([&] { return executor->inspect().live_procedures() == 0; });
      }
    }
    submit("held", 1);
    store->write(false);
    inside.wait();
    answers = 0;
    answerers.clear();
  }
  ~BusyWorker() {
    if (!release.try_wait()) release.count_down();
    // Until nothing is live, the store is told to write.
    write_until([&] { return executor->inspect().live_procedures() == 0; });
  }
  template <class Condition>
  void write_until(Condition&& reached) {
    while (!reached()) store->write(false);
  }
  void submit(const std::string& name, int count) {
    for (int i = 0; i < count; ++i) {
      executor->async(CallbackThread::kEngine)
          .submit(Job(world, name), {}, [this](const Result<Submitted>&) {
            if (HeldStore::owes()) ++early;
            {
              const std::scoped_lock lock(answerers_mutex);
              answerers.insert(std::this_thread::get_id());
            }
            ++answers;
            answers.notify_all();
          });
    }
  }
};

TEST_CASE("a long list is left to a worker that comes out of its run, if the store writes again") {
  BusyWorker busy;
  busy.submit("quick", kLong);
  busy.store->write(true);
  REQUIRE(busy.answers == 0);

  busy.release.count_down();
  for (int seen = busy.answers; seen != kLong; seen = busy.answers) busy.answers.wait(seen);

  CHECK(busy.answerers.size() == 1);
  CHECK_FALSE(busy.answerers.contains(std::this_thread::get_id()));
  CHECK(busy.early == 0);  // the record of the held step does not wait for so many
}

TEST_CASE("a list that was left is published after the next write, if no worker has come") {
  const bool more_follows = GENERATE(false, true);
  BusyWorker busy;
  busy.submit("quick", kLong);
  busy.store->write(true);
  busy.submit("quick", kLong);
  busy.store->write(more_follows);

  CHECK(busy.answers == 2 * kLong);
  CHECK(busy.answerers == std::set{std::this_thread::get_id()});
}

TEST_CASE("a long list is published at once if the store need not write again") {
  BusyWorker busy;
  busy.submit("quick", kLong);
  busy.store->write(false);
  CHECK(busy.answers == kLong);
}

TEST_CASE("a short list is published at once") {
  BusyWorker busy;
  busy.submit("quick", 255);
  busy.store->write(true);
  CHECK(busy.answers == 255);
}

TEST_CASE("a long list is not left to a worker whose runs take long") {
  BusyWorker busy(/*has_long_steps=*/true);
  busy.submit("quick", kLong);
  busy.store->write(true);
  CHECK(busy.answers == kLong);
}

}  // namespace
}  // namespace pv2::testing::who_publishes_test
