// SPDX-License-Identifier: Apache-2.0
//
// The free files of the log: how they grow, that they are durable before they are used, and that a
// full or failing disk loses none.

#include "log/segment_pool.h"

#include <string>
#include <utility>
#include <vector>

#include "../step_files.h"
#include "../store_fixture.h"
#include "support/catch.h"

namespace pv2::testing::segment_pool_test {
namespace {

constexpr SegmentPool::Options kOptions{.bytes_min = 1'000, .bytes_max = 20'000, .files_max = 5};

// A pool on an empty directory.
struct Ground {
  CrashEnv env;
  SegmentPool pool;
  explicit Ground(SegmentPool::Options options = kOptions)
      : pool(env, env.directory_sync(), "store", options) {
    REQUIRE(env.CreateDir("store").ok());
    REQUIRE(env.directory_sync()(".").ok());
  }
  // nullopt: there was none, and none could be made.
  std::optional<SegmentPool::File> next() {
    static_cast<void>(pool.prepare());
    return pool.take();
  }
};

TEST_CASE(
    "each next file is four times as large, up to the limit, and no more files than allowed") {
  Ground ground;
  REQUIRE_FALSE(ground.pool.has_free());
  REQUIRE_FALSE(ground.pool.take().has_value());
  const std::size_t sizes[] = {1'000, 4'000, 16'000, 20'000, 20'000};
  for (std::size_t i = 0; i < 5; ++i) {
    REQUIRE(ground.pool.prepare().ok());
    REQUIRE(ground.pool.has_free());
    const auto file = ground.pool.take();
    REQUIRE(file->name == "PV2-STEPS-" + std::to_string(i + 1));
    REQUIRE(file->bytes == sizes[i]);
    REQUIRE(ground.env.contents("store/" + file->name) == std::string(sizes[i], '\0'));
  }
  REQUIRE(ground.pool.prepare().ok());  // there is nothing to do, which is no failure
  REQUIRE_FALSE(ground.pool.has_free());
  REQUIRE(step_files(ground.env).empty());
  REQUIRE(ground.env.files().size() == 5);
}

TEST_CASE("a file that the pool was not told of is left alone, and so is every later attempt") {
  Ground ground;
  ground.env.set_contents("store/PV2-STEPS-1", "acknowledged");
  for (int attempt = 0; attempt < 2; ++attempt) {
    CHECK(ground.pool.prepare().code() == StatusCode::kIoError);
    CHECK_FALSE(ground.pool.has_free());
    CHECK(ground.env.files() == std::vector<std::string>{"store/PV2-STEPS-1"});
    CHECK(ground.env.contents("store/PV2-STEPS-1") == "acknowledged");
  }
}

TEST_CASE("a file that is free is used again, the largest first, and grows to the size wanted") {
  Ground ground;
  auto first = *ground.next();
  auto second = *ground.next();
  ground.pool.give_back(first);
  ground.pool.give_back(second);
  REQUIRE(ground.pool.take()->name == second.name);
  ground.pool.give_back(second);

  REQUIRE(ground.pool.prepare().ok());  // 20 000 are wanted after three were taken
  const auto grown = ground.pool.take();

  REQUIRE(grown->name == second.name);
  REQUIRE(grown->bytes == 20'000);
  REQUIRE(ground.env.contents("store/" + grown->name).size() == 20'000);
  REQUIRE(ground.pool.take()->name == first.name);  // smaller than wanted, but there
}

TEST_CASE("growing a file keeps the bytes that are in it") {
  Ground ground;
  const auto file = *ground.next();
  ground.env.set_contents("store/" + file.name, std::string(1'000, 'x'));
  ground.pool.give_back(file);
  REQUIRE(ground.pool.prepare().ok());
  const std::string bytes = ground.env.contents("store/" + file.name);
  REQUIRE(bytes == std::string(1'000, 'x') + std::string(3'000, '\0'));
}

TEST_CASE("files of an earlier process are used, and a new one takes a name that is not there") {
  Ground ground;
  ground.pool.add({"PV2-STEPS-7", 500});
  ground.pool.add({"PV2-STEPS-3", 800});
  REQUIRE(ground.pool.take()->name == "PV2-STEPS-3");
  REQUIRE(ground.pool.take()->name == "PV2-STEPS-7");
  REQUIRE(ground.next()->name == "PV2-STEPS-8");
}

TEST_CASE("of more files than are allowed as many are used as are allowed") {
  Ground ground({.bytes_min = 500, .bytes_max = 500, .files_max = 2});
  for (int i = 1; i <= 4; ++i) ground.pool.add({"PV2-STEPS-" + std::to_string(i), 500});
  const auto first = *ground.next();
  REQUIRE(ground.next().has_value());
  REQUIRE_FALSE(ground.pool.has_free());
  REQUIRE_FALSE(ground.next().has_value());
  ground.pool.give_back(first);
  REQUIRE(ground.next().has_value());
}

TEST_CASE("a second file is made only if the disk keeps a reserve, and the first in any case") {
  constexpr std::size_t kReserve = std::size_t{1} << 20;
  Ground ground;
  ground.env.set_space(5'000);
  REQUIRE(ground.next().has_value());
  ground.env.set_space(1'000 + 3'999 + kReserve);
  const Status refused = ground.pool.prepare();
  REQUIRE(refused.code() == StatusCode::kStorageFull);
  REQUIRE_THAT(std::string(refused.message()), ContainsSubstring("1048576 are for commits"));
  REQUIRE(ground.env.files().size() == 1);
  ground.env.set_space(1'000 + 4'000 + kReserve);
  REQUIRE(ground.pool.prepare().ok());
}

TEST_CASE("a free file that somebody has removed is not made again without its name") {
  Ground ground;
  const auto first = *ground.next();
  ground.pool.give_back(first);
  REQUIRE(ground.env.RemoveFile("store/" + first.name).ok());
  REQUIRE_FALSE(ground.pool.prepare().ok());
  REQUIRE(ground.env.files().empty());
}

TEST_CASE("a file that was prepared survives a power cut with all its bytes and its name") {
  Ground ground;
  const auto first = *ground.next();
  REQUIRE(ground.pool.prepare().ok());
  ground.env.crash();
  ground.env.reboot();
  REQUIRE(ground.env.contents("store/" + first.name).size() == 1'000);
  REQUIRE(ground.env.contents("store/PV2-STEPS-2").size() == 4'000);
}

TEST_CASE("a failure at any operation of making a file loses none, and the next try makes it") {
  bool done = false;
  for (int failing = 0; !done; ++failing) {
    INFO("operation " << failing << " fails");
    Ground ground;
    const auto first = *ground.next();
    int operation = 0;
    ground.env.set_fault([&](CrashEnv::Operation, const std::string& file) {
      return operation++ == failing ? leveldb::Status::IOError(file, "the disk is on fire")
                                    : leveldb::Status::OK();
    });
    const Status failed = ground.pool.prepare();
    ground.env.set_fault(nullptr);
    done = failed.ok();
    if (!done) {
      REQUIRE(failed.code() == StatusCode::kIoError);
      REQUIRE_THAT(std::string(failed.message()), ContainsSubstring("making room for the log"));
      REQUIRE_FALSE(ground.pool.take().has_value());
      ground.pool.give_back(first);  // a smaller one is used meanwhile
      REQUIRE(ground.pool.take()->name == first.name);
    }
    REQUIRE(ground.pool.prepare().ok());
    const auto second = ground.pool.take();
    REQUIRE(second->name == "PV2-STEPS-2");
    ground.env.crash();
    ground.env.reboot();
    REQUIRE(ground.env.contents("store/" + second->name) == std::string(second->bytes, '\0'));
    REQUIRE(ground.env.files().size() == 2);
  }
}

TEST_CASE("a disk that is full while a file is made loses none, and a smaller one is used") {
  for (std::size_t space = 1'000; space < 4'000; space += 333) {
    INFO("space: " << space);
    Ground ground;
    const auto first = *ground.next();
    ground.env.set_space(space);
    const Status full = ground.pool.prepare();
    REQUIRE(full.code() == StatusCode::kStorageFull);
    REQUIRE_FALSE(ground.pool.has_free());
    ground.pool.give_back(first);
    REQUIRE(ground.pool.prepare().code() == StatusCode::kStorageFull);  // it cannot grow either
    REQUIRE(ground.pool.take()->bytes == 1'000);
    ground.env.set_space(SIZE_MAX);
    REQUIRE(ground.pool.prepare().ok());
    REQUIRE(ground.pool.take()->bytes >= 4'000);
    REQUIRE(ground.env.files().size() == 2);
  }
}

// A quota may end where the disk says that it has space. Zeros are written 256 KiB at a time.
TEST_CASE("a file that does not fit gives back the space that it has got") {
  Ground ground({.bytes_min = 400'000, .bytes_max = 800'000, .files_max = 2});
  int writes = 0;
  ground.env.set_fault([&](CrashEnv::Operation operation, const std::string& file) {
    const bool second = operation == CrashEnv::Operation::kAppend && ++writes == 2;
    return second ? leveldb::Status::IOError(file, "No space left on device")
                  : leveldb::Status::OK();
  });

  REQUIRE(ground.pool.prepare().code() == StatusCode::kStorageFull);

  REQUIRE(writes == 2);
  REQUIRE(ground.env.contents("store/PV2-STEPS-1").empty());
  ground.env.set_fault(nullptr);
  REQUIRE(ground.next()->bytes == 400'000);
}

TEST_CASE("the first file is not larger than the limit, nor is any other") {
  Ground ground({.bytes_min = 64'000, .bytes_max = 300, .files_max = 3});
  for (int i = 0; i < 3; ++i) REQUIRE(ground.next()->bytes == 300);
  REQUIRE_FALSE(ground.next().has_value());
}

}  // namespace
}  // namespace pv2::testing::segment_pool_test
