// SPDX-License-Identifier: Apache-2.0
//
// Who writes the records when little is in flight: the worker itself, and a caller of submit() that
// only waits. While either writes, nobody else does; and a step never begins while its worker owes
// a wake to the store's thread.

#include <pv2/store/memory_procedure_store.h>
#include <pv2/testing/fault_store.h>

#include <atomic>
#include <future>
#include <mutex>
#include <set>
#include <thread>

#include "support/catch.h"
#include "support/engine_world.h"
#include "support/wrapped_store.h"

namespace pv2::testing::who_writes_test {
namespace {

std::unique_ptr<FaultStore> threaded_store() {
  return std::make_unique<FaultStore>(
      memory(std::make_shared<MemoryDisk>(), {.mode = MemoryStoreOptions::Mode::kThread}));
}

// Notes which threads wrote, and whether requests are queued that nobody was told to write.
class WatchedStore final : public WrappedStore, private CommitSink {
 public:
  explicit WatchedStore(std::unique_ptr<ProcedureStore> inner) : WrappedStore(std::move(inner)) {}

  Status recover_lease(CommitSink& sink) override {
    sink_ = &sink;
    return WrappedStore::recover_lease(*this);
  }
  CommitAnswer queue_all(CommitList& requests) override {
    const CommitAnswer answer = inner().queue_all(requests);
    owes() = true;
    return answer;
  }
  CommitAnswer commit_all(CommitList& requests) override {
    if (!holds_deletions_) return inner().commit_all(requests);
    CommitList others;
    while (!requests.empty()) {
      CommitRequest* const request = requests.pop_front();
      (only_deletes(request->batch) ? held_ : others).push_back(*request);
    }
    return others.empty() ? CommitAnswer::kQueued : inner().commit_all(others);
  }
  Written write_queued() override {
    owes() = false;
    ++asked();
    if (releases() && holds_deletions_.exchange(false)) inner().commit_all(held_);
    const Written written = inner().write_queued();
    owes() = written == Written::kSome;
    if (written == Written::kNothing) return written;
    const std::scoped_lock lock(writers_mutex_);
    writers_.insert(std::this_thread::get_id());
    return written;
  }
  void wake_writer() override {
    owes() = false;
    inner().wake_writer();
  }

  // Whether this thread has queued requests and has told nobody yet.
  static bool& owes() {
    thread_local bool owes = false;
    return owes;
  }
  // How often this thread has called write_queued().
  static int& asked() {
    thread_local int asked = 0;
    return asked;
  }
  // Requests that only delete rows wait, until a thread that releases() them asks for work.
  void hold_deletions() { holds_deletions_ = true; }
  static bool& releases() {
    thread_local bool releases = false;
    return releases;
  }
  bool has_written(std::thread::id thread) {
    const std::scoped_lock lock(writers_mutex_);
    return writers_.contains(thread);
  }
  // How often a thread that had published owed a wake.
  std::atomic<int> owed_by_publisher = 0;

 private:
  void on_committed(CommitList finished) noexcept override {
    sink_->on_committed(std::move(finished));
    if (owes()) ++owed_by_publisher;
  }
  static bool only_deletes(const RowBatch& batch) {
    bool only = true;
    batch.for_each([&](RowOperation operation, Space, std::string_view, std::string_view) {
      only = only && operation == RowOperation::kDelete;
    });
    return only;
  }

  CommitSink* sink_ = nullptr;
  std::atomic<bool> holds_deletions_ = false;
  CommitList held_;  // filled by whoever publishes the end of a tree, one thread at a time
  std::mutex writers_mutex_;
  std::set<std::thread::id> writers_;
};

struct Ground {
  World world;
  FaultStore* faults = nullptr;
  WatchedStore* store = nullptr;
  std::promise<std::thread::id> store_has_failed;
  std::atomic<std::thread::id> worker;
  std::atomic<int> steps = 0;
  std::atomic<int> early = 0;  // steps that began while their worker owed a wake
  std::unique_ptr<ProcedureExecutor> executor;

  Ground() {
    world.scripts["five steps"] = {.steps = 5, .run = [this](JobRun&) -> std::optional<Outcome> {
                                     worker = std::this_thread::get_id();
                                     ++steps;
                                     if (WatchedStore::owes()) ++early;
                                     return std::nullopt;
                                   }};
    world.scripts["parent"] = {.children = {"five steps", "five steps"}};
    auto inner = threaded_store();
    faults = inner.get();
    auto watched = std::make_unique<WatchedStore>(std::move(inner));
    store = watched.get();
    ExecutorOptions options;
    options.store = std::move(watched);
    add_job_types(options.registry, world);
    options.workers = 1;
    options.log = [this](LogLevel, std::string_view) {
      if (WatchedStore::owes()) ++early;
    };
    options.on_store_failure = [this](const Status&) {
      store_has_failed.set_value(std::this_thread::get_id());  // throws if it is called twice
    };
    executor = open_executor(std::move(options));
  }
  ProcedureId run_one(const std::string& name = "five steps") {
    const auto submitted = executor->submit(Job(world, name));
    REQUIRE(submitted.ok());
    REQUIRE(executor->wait(submitted->id)->status.ok());
    return submitted->id;
  }
  // The store's own thread may be awake at first, and then it writes.
  void run_until_it_writes(std::thread::id who) {
    do {
      run_one();
    } while (!store->has_written(who));
  }
};

TEST_CASE("with one procedure in flight its worker writes the records of its steps") {
  Ground ground;
  ground.executor->start();
  ground.run_one();  // says which thread the worker is
  ground.run_until_it_writes(ground.worker);
  REQUIRE(ground.early == 0);
}

TEST_CASE("a caller that waits until its submission is durable writes it itself") {
  Ground ground;
  ground.executor->start();
  ground.run_until_it_writes(std::this_thread::get_id());
}

TEST_CASE("a caller with a callback leaves the writing to the store") {
  Ground ground;
  ground.executor->start();
  std::atomic<int> ended = 0;
  constexpr int kMany = 200;
  for (int i = 0; i < kMany; ++i) {
    ground.executor->async().submit(Job(ground.world, "five steps"), {},
                                    [&](const Result<Submitted>& submitted) {
                                      if (submitted.ok()) ++ended;
                                      ended.notify_all();
                                    });
  }
  for (int seen = ended; seen != kMany; seen = ended) ended.wait(seen);

  REQUIRE_FALSE(ground.store->has_written(std::this_thread::get_id()));
  REQUIRE_FALSE(WatchedStore::owes());
}

TEST_CASE(
    "an acknowledgement that waits for the rows of a tree is written, whoever publishes those") {
  Ground ground;
  ground.executor->start();
  ground.store->hold_deletions();
  const ProcedureId parent = ground.run_one("parent");
  WatchedStore::releases() = true;  // when this thread waits for its acknowledgement

  REQUIRE(ground.executor->acknowledge(parent).ok());

  WatchedStore::releases() = false;
  REQUIRE(ground.store->owed_by_publisher == 0);
}

TEST_CASE("a caller whose answer is known at once writes nothing for others") {
  Ground ground;
  ground.executor->start();
  const SubmitOptions once{.nonce = {7, 1}};
  REQUIRE(ground.executor->submit(Job(ground.world, "five steps"), once).ok());
  const int before = WatchedStore::asked();

  REQUIRE(ground.executor->find(once.nonce).ok());
  REQUIRE(ground.executor->submit(Job(ground.world, "five steps"), once)->replayed);

  REQUIRE(WatchedStore::asked() == before);
}

TEST_CASE("when the unit that a caller writes fails, it is told, and the host is told once") {
  Ground ground;
  ground.executor->start();
  ground.run_until_it_writes(std::this_thread::get_id());
  ground.faults->fail_commit(ground.faults->commits() + 1,
                             Status(StatusCode::kIoError, "the disk is gone"));

  const auto submitted = ground.executor->submit(Job(ground.world, "five steps"));

  REQUIRE(submitted.status().code() == StatusCode::kUnknownOutcome);
  REQUIRE(ground.store_has_failed.get_future().get() != std::this_thread::get_id());
  REQUIRE_FALSE(ground.executor->health().ok());
  REQUIRE(ground.executor->submit(Job(ground.world, "five steps")).status().code() ==
          StatusCode::kIoError);
  ground.executor->stop();
}

TEST_CASE("many callers that write, and the worker, lose no procedure between them") {
  Ground ground;
  ground.executor->start();
  std::vector<std::thread> callers;
  std::atomic<int> troubles = 0;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto submitted = ground.executor->submit(Job(ground.world, "five steps"));
        if (!submitted.ok() || !ground.executor->wait(submitted->id)->status.ok()) ++troubles;
        if (i % 2 == 0 && !ground.executor->acknowledge(submitted->id).ok()) ++troubles;
        if (WatchedStore::owes()) ++troubles;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();

  REQUIRE(troubles == 0);
  REQUIRE(ground.early == 0);
  REQUIRE(ground.steps == 4 * 200 * 5);
}

}  // namespace
}  // namespace pv2::testing::who_writes_test
