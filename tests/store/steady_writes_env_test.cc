// SPDX-License-Identifier: Apache-2.0
//
// What LevelDB writes is on its way to the disk while its file grows.

#include "steady_writes_env.h"

#include <leveldb/env.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store_fixture.h"
#include "support/catch.h"

namespace pv2::testing::steady_writes_env_test {
namespace {

constexpr std::size_t kStep = SteadyWritesEnv::kStep;

// Notes what is to be written out, and of which file.
struct Ground {
  struct Range {
    std::uint64_t offset;
    std::uint64_t bytes;
    bool operator==(const Range&) const = default;
  };
  TemporaryDirectory directory;
  std::vector<Range> ranges;
  std::vector<std::string> files;
  SteadyWritesEnv env{
      *leveldb::Env::Default(), [this](int fd, std::uint64_t offset, std::uint64_t bytes) {
        ranges.push_back({offset, bytes});
        files.push_back(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)));
      }};

  std::unique_ptr<leveldb::WritableFile> make(const std::string& name) {
    leveldb::WritableFile* file = nullptr;
    REQUIRE(env.NewWritableFile(name, &file).ok());
    return std::unique_ptr<leveldb::WritableFile>(file);
  }
  static void write(leveldb::WritableFile& file, std::size_t bytes) {
    REQUIRE(file.Append(std::string(bytes, 'x')).ok());
    REQUIRE(file.Flush().ok());
  }
};

TEST_CASE("a log or table is written out step by step, what was flushed and nothing twice") {
  Ground ground;
  const std::string name = ground.directory.path(GENERATE("000005.log", "000006.ldb"));
  const auto file = ground.make(name);
  REQUIRE(file->Append(std::string(kStep + 1, 'x')).ok());
  CHECK(ground.ranges.empty());  // it may be in the memory of this process only
  REQUIRE(file->Flush().ok());
  Ground::write(*file, kStep - 1);
  Ground::write(*file, 2);
  Ground::write(*file, kStep);
  REQUIRE(file->Close().ok());

  CHECK(ground.ranges ==
        std::vector<Ground::Range>{{0, kStep + 1}, {kStep + 1, kStep + 1}, {2 * kStep + 2, kStep}});
  CHECK(ground.files == std::vector<std::string>(3, name));
  CHECK(std::filesystem::file_size(name) == 3 * kStep + 2);
}

TEST_CASE("what was synced is not written out once more") {
  Ground ground;
  const auto file = ground.make(ground.directory.path("000005.log"));
  Ground::write(*file, kStep - 1);
  REQUIRE(file->Sync().ok());
  Ground::write(*file, kStep - 1);
  CHECK(ground.ranges.empty());
  Ground::write(*file, 1);
  CHECK(ground.ranges == std::vector<Ground::Range>{{kStep - 1, kStep}});
}

TEST_CASE("other files are not written out, and files that are in memory have nothing to be") {
  Ground ground;
  const auto manifest = ground.make(ground.directory.path("MANIFEST-000004"));
  Ground::write(*manifest, 2 * kStep);

  CrashEnv machine;
  SteadyWritesEnv env(machine, [&](int, std::uint64_t, std::uint64_t) { FAIL("no such file"); });
  REQUIRE(env.CreateDir("store").ok());
  leveldb::WritableFile* made = nullptr;
  REQUIRE(env.NewWritableFile("store/000005.log", &made).ok());
  const std::unique_ptr<leveldb::WritableFile> file(made);
  Ground::write(*file, kStep);
  Ground::write(*file, kStep);

  CHECK(ground.ranges.empty());
  CHECK(machine.contents("store/000005.log").size() == 2 * kStep);
}

}  // namespace
}  // namespace pv2::testing::steady_writes_env_test
