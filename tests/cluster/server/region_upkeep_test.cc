// SPDX-License-Identifier: Apache-2.0
//
// What a server does with regions that cannot be flushed or compacted.

#include <chrono>

#include "cluster/server/region_world.h"

namespace pv2::testing::region_upkeep_test {
namespace {

using namespace region_world;  // NOLINT
using namespace std::chrono_literals;

/// Two regions on one server; store files of the first one cannot be made while `is_full`.
struct FullDisk : World {
  RegionInfo other = whole_table({"default", "u"}, "r2");
  ServerName server;
  bool is_full = false;
  std::size_t attempts = 0;
  std::vector<std::string> warnings;

  FullDisk() {
    make_table(other.table, {"f"}, {other});
    server = start("rs1", [this](RegionServerOptions& options) {
      options.memory_max = 10'000;
      options.log = [this](LogLevel level, std::string_view line) {
        if (level == LogLevel::kWarning) warnings.emplace_back(line);
      };
    });
    open(kRegion, server);
    open(other, server);
    env.set_fault([this](CrashEnv::Operation operation, const std::string& file) {
      const bool hit = is_full && operation == CrashEnv::Operation::kCreate &&
                       file.find("/" + kRegion.id + "/") != std::string::npos;
      if (!hit) return leveldb::Status::OK();
      ++attempts;
      return leveldb::Status::IOError(file, "No space left on device");
    });
  }
  ~FullDisk() { env.set_fault(nullptr); }
  bool write(std::uint64_t number, const std::string& region, std::size_t bytes) {
    return call(server, kRegionWrite, put_body("a", std::string(bytes, 'v'), 0, region),
                once(number))
        .ok();
  }
  bool flush(const std::string& region) {
    return call(server, kRegionFlush, encoded(RegionRequest{region}), reading()).ok();
  }
};

}  // namespace

TEST_CASE("a flush that fails is said and tried again after a pause") {
  FullDisk world;
  world.is_full = true;
  REQUIRE(world.write(1, "r1", 12'000));
  world.run_for(10s);

  CHECK(world.attempts >= 2);
  CHECK(world.attempts <= 6);
  CHECK(world.warnings.size() == world.attempts);
  CHECK_FALSE(world.process(world.server).end.has_value());
  // The other region is flushed meanwhile, so there is room.
  for (std::uint64_t i = 0; i < 5; ++i) CHECK(world.write(10 + i, "r2", 7000));
  world.is_full = false;
  const std::size_t attempts = world.attempts;
  world.run_for(20s);
  CHECK(world.attempts == attempts);
  CHECK(world.write(2, "r1", 12'000));
}

TEST_CASE("a region that cannot be compacted does not keep others from it") {
  FullDisk world;
  std::uint64_t number = 0;
  for (const char* const region : {"r1", "r2"}) {
    for (int i = 0; i < 9; ++i) {
      REQUIRE(world.write(++number, region, 10));
      REQUIRE(world.flush(region));
    }
    world.is_full = true;
  }
  world.run_for(10s);

  CHECK(world.attempts >= 2);
  CHECK(world.attempts <= 6);
  const auto names = world.files.list(world.layout.region(world.other.table, world.other.id));
  REQUIRE(names.ok());
  CHECK(names->size() < 5);
}

}  // namespace pv2::testing::region_upkeep_test
