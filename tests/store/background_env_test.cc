// SPDX-License-Identifier: Apache-2.0
//
// LevelDB's background work has a thread of the store's own, which lets others go first.

#include "background_env.h"

#include <leveldb/env.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <filesystem>
#include <fstream>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "store_fixture.h"
#include "support/catch.h"
#include "support/new_threads_limit.h"

namespace pv2::testing::background_env_test {
namespace {

// Counts the work that is scheduled.
class OtherEnv final : public leveldb::EnvWrapper {
 public:
  explicit OtherEnv(leveldb::Env& env = *leveldb::Env::Default()) : EnvWrapper(&env) {}
  void Schedule(void (*work)(void*), void* argument) override {
    ++scheduled;
    EnvWrapper::Schedule(work, argument);
  }
  std::atomic<int> scheduled = 0;
};

// Two works, the second of which the first one schedules, as LevelDB does.
struct Works {
  leveldb::Env& env;
  std::latch left{2};
  std::vector<std::string> threads = {};  // by their names
  int nice = 0;

  static void run(void* works) { static_cast<Works*>(works)->run_one(); }
  void run_one() {
    std::array<char, 32> name{};
    pthread_getname_np(pthread_self(), name.data(), name.size());
    threads.emplace_back(name.data());
    nice = getpriority(PRIO_PROCESS, 0);
    if (threads.size() == 1) env.Schedule(&Works::run, this);
    left.count_down();
  }
};

TEST_CASE("background work runs on a thread of its own, which lets others go first") {
  OtherEnv other;
  std::optional<BackgroundEnv> env(other);
  REQUIRE(env->start().ok());
  Works works{*env};
  env->Schedule(&Works::run, &works);
  works.left.wait();
  env.reset();  // waits until the thread has ended

  CHECK(works.threads == std::vector<std::string>{"pv2-leveldb", "pv2-leveldb"});
  CHECK(works.nice == std::min(getpriority(PRIO_PROCESS, 0) + 5, 19));
  CHECK(other.scheduled == 0);
}

TEST_CASE("background work is done again after a stop and a start") {
  OtherEnv other;
  BackgroundEnv env(other);
  for (int life = 0; life < 2; ++life) {
    REQUIRE(env.start().ok());
    for (int again = 0; again < 50; ++again) {
      Works works{env};
      env.Schedule(&Works::run, &works);
      works.left.wait();
    }
    env.stop();
  }
  CHECK(other.scheduled == 0);
}

TEST_CASE("the Env that all databases share does none of a store's background work") {
  CrashEnv machine;
  OtherEnv other(machine);
  RecordingSink sink;
  LevelDbProcedureStore store("store", {.write_buffer_bytes = std::size_t{64} << 10,
                                        .segment_bytes = std::size_t{64} << 10,
                                        .env = static_cast<leveldb::Env*>(&other),
                                        .segment_files = machine.as_segment_files(),
                                        .sync_directory = machine.directory_sync()});
  REQUIRE(store.recover_lease(sink).ok());
  std::deque<Request> requests(100);
  int last = 0;
  for (Request& request : requests) {
    request.batch.put(Space::kHost, std::to_string(++last), std::string(10'000, 'x'));
    store.commit(request);
    sink.wait_for(static_cast<std::size_t>(last), store);
  }
  store.close();

  std::vector<std::string> files;
  REQUIRE(machine.GetChildren("store", &files).ok());
  CHECK(std::any_of(files.begin(), files.end(),
                    [](const std::string& file) { return file.ends_with(".ldb"); }));
  CHECK(other.scheduled == 0);
}

TEST_CASE("a store that is closed has no thread for background work any more") {
  const auto threads = [] {
    std::size_t count = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string name;
      std::ifstream(task.path() / "comm") >> name;
      count += name == "pv2-leveldb" ? 1 : 0;
    }
    return count;
  };
  TemporaryDirectory directory;
  RecordingSink sink;
  LevelDbProcedureStore store(directory.path("db"));
  REQUIRE(store.recover_lease(sink).ok());
  // A thread gives itself its name, and the system forgets it a moment after its end.
  const auto become = [&](std::size_t wanted) {
    for (int looks = 0; looks < 50'000 && threads() != wanted; ++looks) std::this_thread::yield();
    return threads() == wanted;
  };
  CHECK(become(1));
  store.close();
  CHECK(become(0));
}

TEST_CASE("a store for whose background work there is no thread is not opened, and says so") {
  TemporaryDirectory directory;
  RecordingSink sink;
  Status refused;
  {
    const NewThreadsLimit none(0);
    refused = LevelDbProcedureStore(directory.path("db")).recover_lease(sink);
  }
  CHECK(refused.code() == StatusCode::kResourceExhausted);
  CHECK_THAT(std::string(refused.message()), ContainsSubstring("the background work of LevelDB"));
  CHECK(LevelDbProcedureStore(directory.path("db")).recover_lease(sink).ok());
}

}  // namespace
}  // namespace pv2::testing::background_env_test
