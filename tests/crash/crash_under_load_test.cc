// SPDX-License-Identifier: Apache-2.0
//
// Crashes of the whole engine on LevelDB while several threads submit: a process is killed, or a
// machine loses power on a file system that loses what was not synced. After each crash the ledger
// is compared with the store. The moment of a crash is a number of events, not a time.
//
// PV2_CRASH_ROUNDS says how many rounds there are (tests/nightly.sh: 1000), PV2_TEST_SEED which
// seed is the first. A seed repeats the choices, not the interleaving.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "ledger.h"
#include "pv2/base/random.h"
#include "pv2/store/leveldb_procedure_store.h"
#include "pv2/testing/seeds.h"
#include "support/catch.h"
#include "support/crash_env.h"

extern char** environ;

namespace pv2::testing::crash_under_load_test {
namespace {

constexpr int kReportEnd = 3;  // the descriptor to which a life writes its events
constexpr const char* kLife = "one life of a process that is killed";
// Small, so that tables are written and logs are switched under load.
constexpr std::size_t kWriteBuffer = 64 << 10;
constexpr std::size_t kSegment = 16 << 10;  // many checkpoints in each life

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// What a killed process has written stays written, so the file system only decides how long a sync
// takes: a few rounds run in memory, many where TMPDIR says.
struct TemporaryStore {
  explicit TemporaryStore(std::uint64_t rounds) {
    const std::filesystem::path memory = "/dev/shm";
    std::error_code ignored;
    const bool here = rounds < 100 && std::filesystem::is_directory(memory, ignored);
    const auto parent = here ? memory : std::filesystem::temp_directory_path();
    std::string pattern = (parent / "pv2-crash-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    directory = pattern;
  }
  ~TemporaryStore() {
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  }
  TemporaryStore(const TemporaryStore&) = delete;
  TemporaryStore& operator=(const TemporaryStore&) = delete;
  [[nodiscard]] std::string path() const { return directory + "/store"; }

  std::string directory;
};

std::unique_ptr<ProcedureStore> store_at(const std::string& path) {
  return leveldb(path, {.write_buffer_bytes = kWriteBuffer, .segment_bytes = kSegment});
}

// This program again, running one life only; killed when this object is destroyed.
class LifeProcess {
 public:
  LifeProcess(const std::string& path, KeyRange keys, std::uint64_t seed) {
    int ends[2] = {-1, -1};
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    reading_ = ends[0];
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    // dup2 of a descriptor to itself would leave it to be closed by exec.
    const int writing = ends[1] == kReportEnd ? ::fcntl(ends[1], F_DUPFD_CLOEXEC, 10) : ends[1];
    ::posix_spawn_file_actions_adddup2(&actions, writing, kReportEnd);
    std::vector<std::string> settings = {
        "PV2_LIFE_STORE=" + path, "PV2_LIFE_FIRST=" + std::to_string(keys.first),
        "PV2_LIFE_NEXT=" + std::to_string(keys.next), "PV2_LIFE_SEED=" + std::to_string(seed)};
    std::vector<char*> environment;
    for (char** each = environ; *each != nullptr; ++each) environment.push_back(*each);
    for (std::string& setting : settings) environment.push_back(setting.data());
    environment.push_back(nullptr);
    std::string program = "crash_tests";
    std::string test = kLife;
    char* arguments[] = {program.data(), test.data(), nullptr};
    const int error =
        ::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments, environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (writing != ends[1]) ::close(writing);
    REQUIRE(error == 0);
  }
  ~LifeProcess() {
    kill();
    ::waitpid(pid_, nullptr, 0);
    ::close(reading_);
  }
  LifeProcess(const LifeProcess&) = delete;
  LifeProcess& operator=(const LifeProcess&) = delete;

  void kill() const { ::kill(pid_, SIGKILL); }
  // The next event; false when the process is gone and all its events were read.
  bool read(Event& event) const { return ::read(reading_, &event, sizeof event) == sizeof event; }

 private:
  pid_t pid_ = -1;
  int reading_ = -1;
};

}  // namespace

TEST_CASE("one life of a process that is killed", "[.][life]") {
  const char* const path = std::getenv("PV2_LIFE_STORE");
  if (path == nullptr) return;  // called by hand
  const Report report = [](const Event& event) {
    // One piece: a pipe takes up to 4096 bytes whole.
    if (::write(kReportEnd, &event, sizeof event) != sizeof event) std::abort();
  };
  report(event(Event::Kind::kAlive, 0));
  const std::uint64_t seed = number_from_environment("PV2_LIFE_SEED", 1);
  auto opened = open_for_load(store_at(path), report, 2, load_of(seed));
  if (!opened.ok()) {
    report(event(Event::Kind::kTrouble, 0, 0, false, opened.status().to_string()));
    return;
  }
  report(event(Event::Kind::kOpened, 0));
  (*opened)->start();
  run_clients(
      **opened, report,
      {number_from_environment("PV2_LIFE_FIRST", 1), number_from_environment("PV2_LIFE_NEXT", 1)},
      seed, 200);
}

TEST_CASE("a process killed at any moment under load loses nothing and does nothing twice") {
  const std::uint64_t rounds = number_from_environment("PV2_CRASH_ROUNDS", 30);
  const std::uint64_t first = seeds_from_environment(1).first;
  TemporaryStore place(rounds);
  const MakeStore make_store = [&place] { return store_at(place.path()); };
  Ledger ledger;

  for (std::uint64_t round = 0; round < rounds; ++round) {
    INFO("round " << round << ", PV2_TEST_SEED=" << first + round);
    Random random(first + round);
    {
      const LifeProcess life(place.path(), ledger.keys(), first + round);
      // Some lives die while they open and replay, some when nearly everything is done.
      std::uint64_t left = 1 + random.below(random.below(4) == 0 ? 4 : 1200);
      Event event;
      while (life.read(event)) {
        ledger.note(event);
        if (--left == 0) life.kill();
        if (left == 0) left = UINT64_MAX;  // read on what it reported before it died
      }
    }
    ledger.check_found(make_store);
    if (random.below(3) == 0 || round + 1 == rounds) ledger.check_ended(make_store);
    REQUIRE(ledger.troubles() == std::vector<std::string>());
  }
  if (rounds > 100) {
    std::cout << rounds << " rounds of SIGKILL: " << ledger.submitted() << " submissions answered, "
              << ledger.runs() << " steps run\n";
  }
  REQUIRE(ledger.submitted() > 0);
}

TEST_CASE("a machine that loses power at any moment under load loses nothing that was synced") {
  const std::uint64_t rounds = number_from_environment("PV2_CRASH_ROUNDS", 30);
  const std::uint64_t first = seeds_from_environment(1).first;
  CrashEnv env(first);
  const MakeStore make_store = [&env] {
    return leveldb("store", {.write_buffer_bytes = kWriteBuffer,
                             .segment_bytes = kSegment,
                             .env = env.as_env(),
                             .segment_files = env.as_segment_files(),
                             .sync_directory = env.directory_sync()});
  };
  Ledger ledger;
  const Report report = [&ledger](const Event& event) { ledger.note(event); };

  for (std::uint64_t round = 0; round < rounds; ++round) {
    INFO("round " << round << ", PV2_TEST_SEED=" << first + round);
    Random random(first + round);
    const auto torn =
        random.below(2) == 0 ? CrashEnv::TornTail::kNone : CrashEnv::TornTail::kRandom;
    env.crash_before_operation(random.below(random.below(4) == 0 ? 20 : 400), torn);
    auto opened = open_for_load(make_store(), report, 2, load_of(first + round));
    if (opened.ok()) {
      (*opened)->start();
      run_clients(**opened, report, ledger.keys(), first + round, 200);
    } else {
      REQUIRE_THAT(opened.status().to_string(), ContainsSubstring("the power is off"));
    }
    env.crash(torn);  // before the executor is destroyed, which would write
    if (opened.ok()) opened->reset();
    env.reboot();

    ledger.check_found(make_store);
    if (random.below(3) == 0 || round + 1 == rounds) ledger.check_ended(make_store);
    REQUIRE(ledger.troubles() == std::vector<std::string>());
  }
  if (rounds > 100) {
    std::cout << rounds << " power cuts: " << ledger.submitted() << " submissions answered, "
              << ledger.runs() << " steps run\n";
  }
  REQUIRE(ledger.submitted() > 0);
}

}  // namespace pv2::testing::crash_under_load_test
