// SPDX-License-Identifier: Apache-2.0
//
// What a LevelDB store still writes when a commit has failed: what its threads have begun, and
// nothing more.

#include <pthread.h>

#include <array>
#include <atomic>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <latch>
#include <string>
#include <string_view>
#include <thread>

#include "store_fixture.h"
#include "support/catch.h"

namespace pv2::testing::after_a_failure_test {
namespace {

constexpr std::string_view kThread = "pv2-checkpoint";

std::string name_of_this_thread() {
  std::array<char, 32> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

bool is_running() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    if (name == kThread) return true;
  }
  return false;
}

// Holds the thread of the checkpoints in the first one, and counts them.
struct HeldCheckpoint {
  std::latch begun{1};
  std::latch go_on{1};
  std::atomic<int> count = 0;

  leveldb::Status operator()(CrashEnv::Operation operation, const std::string& file) {
    const bool is_checkpoint = operation == CrashEnv::Operation::kSync && file.ends_with(".log");
    if (!is_checkpoint || name_of_this_thread() != kThread) return leveldb::Status::OK();
    if (++count == 1) {
      begun.count_down();
      go_on.wait();
    }
    return leveldb::Status::OK();
  }
};

TEST_CASE("after a commit that has failed no further segment goes into the database") {
  CrashEnv env;
  LevelDbOptions options = on_crash_env(env, 1, 5);  // of one block, which a commit fills
  { REQUIRE(Writer(options).open().ok()); }
  for (int file = 1; file <= 5; ++file) {
    env.set_contents("store/PV2-STEPS-" + std::to_string(file), std::string(4'096, '\0'));
  }
  options.committer = LevelDbOptions::Committer::kThread;
  options.limits = kTestLimits;
  RecordingSink sink;
  LevelDbProcedureStore store("store", options);
  REQUIRE(store.recover_lease(sink).ok());
  std::deque<Request> requests;
  const auto commit = [&](std::size_t bytes) {
    requests.emplace_back().batch.put(Space::kHost, "key", std::string(bytes, 'v'));
    store.commit(requests.back());
    return sink.wait_for(requests.size(), store).back().status;
  };
  REQUIRE(commit(3'000).ok());
  HeldCheckpoint held;
  env.set_fault(std::ref(held));
  for (int i = 0; i < 4; ++i) REQUIRE(commit(3'000).ok());  // now three checkpoints are due
  held.begun.wait();

  REQUIRE_FALSE(commit(kTestLimits.batch_bytes + 1).ok());
  held.go_on.count_down();
  while (is_running() && held.count == 1) std::this_thread::yield();

  CHECK(held.count == 1);
  store.close();
  env.set_fault(nullptr);
}

}  // namespace
}  // namespace pv2::testing::after_a_failure_test
