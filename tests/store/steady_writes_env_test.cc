// SPDX-License-Identifier: Apache-2.0
//
// What LevelDB writes is on its way to the disk while its file grows.

#include "steady_writes_env.h"

#include <fcntl.h>
#include <leveldb/env.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "leveldb_rows.h"
#include "store_fixture.h"
#include "support/catch.h"

namespace pv2::testing::steady_writes_env_test {
namespace {

constexpr std::uint64_t kStep = SteadyWritesEnv::kStep;
constexpr std::uint64_t kPage = SteadyWritesEnv::kPage;

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
  std::vector<int> descriptors;
  int answer = 0;
  SteadyWritesEnv env{*leveldb::Env::Default(), [this](auto... what) { return note(what...); }};

  int note(int fd, std::uint64_t offset, std::uint64_t bytes) {
    ranges.push_back({offset, bytes});
    files.push_back(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)));
    descriptors.push_back(fd);
    return answer;
  }
  std::unique_ptr<leveldb::WritableFile> make(const std::string& name) {
    leveldb::WritableFile* file = nullptr;
    REQUIRE(env.NewWritableFile(name, &file).ok());
    return std::unique_ptr<leveldb::WritableFile>(file);
  }
  static leveldb::Status write(leveldb::WritableFile& file, std::size_t bytes) {
    REQUIRE(file.Append(std::string(bytes, 'x')).ok());
    return file.Flush();
  }
};

TEST_CASE("a log or table is written out step by step, whole pages that were flushed, each once") {
  Ground ground;
  const std::string name = ground.directory.path(GENERATE("000005.log", "000006.ldb"));
  auto file = ground.make(name);
  REQUIRE(file->Append(std::string(kStep + 1, 'x')).ok());
  CHECK(ground.ranges.empty());  // it may be in the memory of this process only
  REQUIRE(file->Flush().ok());
  REQUIRE(Ground::write(*file, kStep - 1).ok());
  REQUIRE(Ground::write(*file, 2).ok());
  REQUIRE(Ground::write(*file, kStep).ok());
  REQUIRE(file->Close().ok());
  file.reset();

  CHECK(ground.ranges ==
        std::vector<Ground::Range>{{0, kStep}, {kStep, kStep}, {2 * kStep, kStep}});
  CHECK(ground.files == std::vector<std::string>(3, std::filesystem::canonical(name)));
  CHECK(::fcntl(ground.descriptors.front(), F_GETFD) == -1);
  CHECK(std::filesystem::file_size(name) == 3 * kStep + 2);
}

TEST_CASE("what was synced is not written out once more, but for a page that was not full") {
  Ground ground;
  const auto file = ground.make(ground.directory.path("000005.log"));
  REQUIRE(Ground::write(*file, kStep - 1).ok());
  REQUIRE(file->Sync().ok());
  REQUIRE(Ground::write(*file, kStep - kPage).ok());
  CHECK(ground.ranges.empty());
  REQUIRE(Ground::write(*file, 1).ok());
  CHECK(ground.ranges == std::vector<Ground::Range>{{kStep - kPage, kStep}});
}

TEST_CASE("a file of which something could not be written out is never synced with success") {
  Ground ground;
  const auto file = ground.make(ground.directory.path("000005.log"));
  const int error = GENERATE(EIO, ENOSPC);
  ground.answer = error;
  const leveldb::Status failed = Ground::write(*file, kStep);
  CHECK(translate(failed).code() ==
        (error == ENOSPC ? StatusCode::kStorageFull : StatusCode::kIoError));
  CHECK_THAT(failed.ToString(), ContainsSubstring("000005.log"));
  ground.answer = 0;
  CHECK_FALSE(file->Sync().ok());
  CHECK_FALSE(file->Sync().ok());
}

TEST_CASE("where a file cannot be written out in part, its sync alone writes it") {
  Ground ground;
  const auto file = ground.make(ground.directory.path("000005.log"));
  ground.answer = ENOSYS;
  REQUIRE(Ground::write(*file, kStep).ok());
  REQUIRE(Ground::write(*file, kStep).ok());
  REQUIRE(file->Sync().ok());
  CHECK(ground.ranges.size() == 1);
}

TEST_CASE("what the system can write out in part succeeds, and a pipe is no such file") {
  Ground ground;
  const auto file = ground.make(ground.directory.path("000005.log"));
  REQUIRE(Ground::write(*file, kStep).ok());
  const int fd = ::open(ground.files.front().c_str(), O_RDONLY | O_CLOEXEC);
  CHECK(SteadyWritesEnv::write_out_by_system(fd, 0, kStep) == 0);
  ::close(fd);
  CHECK(SteadyWritesEnv::write_out_by_system(fd, 0, kStep) == EBADF);
  std::array<int, 2> pipe{};
  REQUIRE(::pipe2(pipe.data(), O_CLOEXEC) == 0);
  CHECK(SteadyWritesEnv::write_out_by_system(pipe[1], 0, kStep) == ENOSYS);
  for (const int end : pipe) ::close(end);
}

TEST_CASE("other files are not written out, nor are files of an Env that has them in memory") {
  Ground ground;
  const auto manifest = ground.make(ground.directory.path("MANIFEST-000004"));
  REQUIRE(Ground::write(*manifest, 2 * kStep).ok());

  CrashEnv machine;
  SteadyWritesEnv env(machine, [&](auto... what) { return ground.note(what...); });
  REQUIRE(env.CreateDir("store").ok());
  leveldb::WritableFile* made = nullptr;
  REQUIRE(env.NewWritableFile("store/000005.log", &made).ok());
  const std::unique_ptr<leveldb::WritableFile> file(made);
  REQUIRE(Ground::write(*file, kStep).ok());
  REQUIRE(Ground::write(*file, kStep).ok());

  CHECK(ground.ranges.empty());
  CHECK(machine.contents("store/000005.log").size() == 2 * kStep);
}

TEST_CASE("the logs and the tables of a store are written out while they grow") {
  TemporaryDirectory temporary;
  std::mutex mutex;
  std::set<std::string> kinds;
  const LevelDbDirectory directory(
      temporary.path("db"),
      LevelDbFiles(*leveldb::Env::Default(), DirectorySync(&pv2::sync_directory)));
  REQUIRE(directory.create().ok());
  LevelDbRows rows(
      directory,
      {.write_buffer_bytes = std::size_t{64} << 10,
       .block_cache_bytes = 0,
       .write_out = [&](int fd, std::uint64_t, std::uint64_t) {
         const std::lock_guard lock(mutex);
         kinds.insert(
             std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)).extension());
         return 0;
       }});
  REQUIRE(rows.create().ok());
  const std::string value(8 * kStep, 'x');
  for (std::uint64_t segment = 1; segment <= 3; ++segment) {
    Overlay::Checkpoint checkpoint;
    checkpoint.segment = {segment};
    checkpoint.rows.push_back({"Hkey", {.value = value, .sequence = {segment}}});
    REQUIRE(rows.write_checkpoint(checkpoint, {segment + 1}).ok());
  }
  rows.close();
  CHECK(kinds == std::set<std::string>{".ldb", ".log"});
}

}  // namespace
}  // namespace pv2::testing::steady_writes_env_test
