// SPDX-License-Identifier: Apache-2.0
//
// A store of many chunks, which several threads decode: everything is loaded, whatever the chunks,
// and what cannot be read ends open(), wherever it is.

#include <filesystem>
#include <iterator>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "records/row_keys.h"
#include "support/engine_world.h"
#include "support/new_threads_limit.h"

namespace pv2::testing::chunked_scan_test {
namespace {

constexpr int kProcedures = 600;

// Procedures that wait, a parent and its child in turn, with 16 KiB each: more than a hundred
// chunks.
struct Stored {
  EngineWorld engine;
  std::vector<ProcedureId> live;  // in order of id

  Stored() {
    const auto waits = [](JobRun& run) -> std::optional<Outcome> {
      run.note.assign(16'000, 'n');
      return Say::wait_for(std::chrono::hours(1));
    };
    engine.world.scripts["waits"] = {.run = waits};
    engine.world.scripts["parent"] = {.children = {"waits"}};
    engine.max_live_procedures = 2 * kProcedures;
    engine.open();
    for (int i = 0; i < kProcedures / 2; ++i) {
      engine.submit(i % 2 == 0 ? "waits" : "parent");
      engine.submit("waits");
    }
    engine.run();
    for (const ProcedureInfo& info :
         engine.executor().inspect().list({}, {}, 2 * kProcedures).procedures) {
      live.push_back(info.id);
    }
    engine.close();
  }
  [[nodiscard]] ExecutorOptions options(unsigned workers) {
    ExecutorOptions options = engine.options();
    options.workers = workers;
    options.store =
        memory(engine.disk, {.mode = options.workers == 0 ? MemoryStoreOptions::Mode::kPump
                                                          : MemoryStoreOptions::Mode::kThread});
    return options;
  }
};

std::size_t threads_now() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

// Where objects of Noted were made, and what the executor said to those constructors that ran on
// other threads than that of the test.
struct Made {
  const std::thread::id test = std::this_thread::get_id();
  ProcedureExecutor* executor = nullptr;
  std::latch executor_is_set{1};
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::set<std::size_t> alive;  // how many threads there were then
  std::set<StatusCode> answers;
};

class Noted final : public Procedure {
 public:
  static constexpr std::string_view kType = "test.Noted";
  explicit Noted(Made& made) {
    const std::thread::id here = std::this_thread::get_id();
    if (here != made.test) made.executor_is_set.wait();
    const std::lock_guard lock(made.mutex);
    made.threads.insert(here);
    if (here == made.test) made.alive.insert(threads_now());
    if (here == made.test || made.executor == nullptr) return;
    made.answers.insert(made.executor->wait(ProcedureId{1}).status().code());
  }
  void fields(auto& f) { f(1, "note", note_); }
  Outcome execute(StepContext& /*ctx*/) override { return wait_for(std::chrono::hours(1)); }

 private:
  std::string note_ = std::string(16'000, 'n');
};

constexpr int kNoted = 100;

// Some ten chunks of Noted, for a program with `workers`.
ExecutorOptions with_noted(const std::shared_ptr<MemoryDisk>& disk, Made& made, unsigned workers) {
  ExecutorOptions options;
  options.workers = workers;
  options.log = {};
  options.registry.add<Noted>(made);
  options.store = memory(disk, {.mode = workers == 0 ? MemoryStoreOptions::Mode::kPump
                                                     : MemoryStoreOptions::Mode::kThread});
  return options;
}

std::shared_ptr<MemoryDisk> disk_with_noted() {
  auto disk = std::make_shared<MemoryDisk>();
  Made made;
  const auto executor = open_executor(with_noted(disk, made, 0));
  for (int i = 0; i < kNoted; ++i) REQUIRE(executor->submit(Noted(made)).ok());
  executor->run_until_idle();
  return disk;
}

}  // namespace

TEST_CASE("without workers nothing is loaded on another thread than that of open()") {
  const auto disk = disk_with_noted();
  const std::size_t before = threads_now();
  Made made;
  const auto executor = open_executor(with_noted(disk, made, 0));
  CHECK(executor->inspect().live_procedures() == kNoted);
  CHECK(made.threads == std::set{std::this_thread::get_id()});
  CHECK(made.alive == std::set{before});
}

TEST_CASE("an object that is made to be loaded cannot wait for the executor that loads it") {
  const auto disk = disk_with_noted();
  Made made;
  ExecutorOptions options = with_noted(disk, made, 2);
  options.load = Load::kInBackground;
  const auto executor = open_executor(std::move(options));
  made.executor = executor.get();
  made.executor_is_set.count_down();
  REQUIRE(executor->wait_until_loaded().ok());  // hangs if one of them waits
  CHECK(made.answers == std::set{StatusCode::kFailedPrecondition});
}

TEST_CASE("a machine that has no thread left for decoders loads the store nevertheless") {
  const auto disk = disk_with_noted();
  Made made;
  made.executor_is_set.count_down();
  for (std::size_t enough = 0;; ++enough) {
    const NewThreadsLimit limit(enough);  // the first one with which it opens leaves none
    const auto opened = ProcedureExecutor::open(with_noted(disk, made, 2));
    if (!opened.ok()) continue;
    CHECK((*opened)->inspect().live_procedures() == kNoted);
    break;
  }
}

TEST_CASE("a store of many chunks is loaded whole, and each procedure is in its tree") {
  const unsigned workers = GENERATE(0U, 2U);
  Stored stored;
  const auto executor = open_executor(stored.options(workers));
  REQUIRE(stored.live.size() == kProcedures + kProcedures / 4);
  CHECK(executor->inspect().live_procedures() == stored.live.size());
  CHECK(executor->inspect().list({.quarantined = true}, {}, 10).procedures.empty());
  for (const ProcedureId id : stored.live) {
    REQUIRE(executor->inspect().describe(id).status().to_string() == "OK");
  }
}

TEST_CASE("open() ends at the first record that it cannot read, in whatever chunk that is") {
  const unsigned workers = GENERATE(0U, 2U);
  const std::size_t percent = GENERATE(0, 50, 99);
  Stored stored;
  const ProcedureId id = stored.live[stored.live.size() * percent / 100];
  const auto header = procedure_key(id, RowKind::kHeader);
  const std::string row = stored.engine.disk->get(Space::kProcedure, header).value_or("");
  stored.engine.disk->put(Space::kProcedure, header, "damaged");
  const auto opened = ProcedureExecutor::open(stored.options(workers));
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.status().code() == StatusCode::kCorruption);
  CHECK_THAT(std::string(opened.status().message()), Catch::Contains(std::to_string(id.value)));

  stored.engine.disk->put(Space::kProcedure, header, row);
  CHECK(open_executor(stored.options(workers))->inspect().live_procedures() == stored.live.size());
}

}  // namespace pv2::testing::chunked_scan_test
