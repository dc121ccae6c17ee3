// SPDX-License-Identifier: Apache-2.0
//
// The master's own file: which one counts when there are several, and what becomes of a master that
// still writes when it has a successor.

#include "master/local_state.h"

#include <string>
#include <utility>

#include "cluster/storage_fixture.h"
#include "storage/framed_fields.h"

namespace pv2::testing::local_state_test {
namespace {

using namespace cluster;  // NOLINT: the layer under test

const std::string kPath = "master/state";

struct World : Disk {
  World() { REQUIRE(files.make_directories("master").ok()); }

  [[nodiscard]] LocalState open() const {
    auto state = LocalState::open(files, kPath);
    REQUIRE(state.status().to_string() == "OK");
    return *std::move(state);
  }
  [[nodiscard]] static LocalContents contents_of(std::uint64_t epoch, std::size_t dead) {
    LocalContents contents;
    contents.epoch = epoch;
    for (std::size_t i = 1; i <= dead; ++i) {
      contents.servers.push_back({{{"rs1", i}, ServerState::kRetired, true}, "key"});
    }
    return contents;
  }
};

}  // namespace

TEST_CASE("what a master writes that has a successor counts for nothing, and it is told") {
  World world;
  LocalState old = world.open();
  REQUIRE(old.replace(World::contents_of(9, 1)).ok());
  LocalState next = world.open();
  REQUIRE(next.replace(World::contents_of(10, 1)).ok());
  next.remove_earlier();
  REQUIRE(next.replace(World::contents_of(10, 2)).ok());

  CHECK(old.replace(World::contents_of(9, 3)).code() == StatusCode::kFenced);

  CHECK(old.contents().servers.size() == 1);
  LocalState last = world.open();
  CHECK(last.contents().epoch == 10);
  CHECK(last.contents().servers.size() == 2);
  REQUIRE(last.replace(World::contents_of(11, 2)).ok());
  last.remove_earlier();
  CHECK(*world.files.list("master") == std::vector<std::string>{"state.11"});
}

TEST_CASE("the master's file of before its name had the epoch is carried over") {
  World world;
  LocalContents contents = World::contents_of(7, 2);
  REQUIRE(world.files.write(kPath, encode_framed(contents)).ok());

  LocalState state = world.open();
  CHECK(state.contents().epoch == 7);
  CHECK(state.contents().servers.size() == 2);
  contents.epoch = 8;
  REQUIRE(state.replace(std::move(contents)).ok());
  CHECK(world.open().contents().epoch == 8);
  state.remove_earlier();

  CHECK(!world.files.exists(kPath));
  CHECK(world.open().contents().servers.size() == 2);
}

TEST_CASE("a file of the master that is damaged, or of another epoch than its name, is not used") {
  World world;
  LocalContents contents = World::contents_of(7, 2);
  const std::string bytes = GENERATE(true, false) ? "garbage" : encode_framed(contents);
  LocalState state = world.open();
  REQUIRE(state.replace(World::contents_of(7, 2)).ok());
  REQUIRE(world.files.write(kPath + ".8", bytes).ok());

  const auto refused = LocalState::open(world.files, kPath);

  CHECK(refused.status().code() == StatusCode::kCorruption);
  CHECK(refused.status().message().find("master/state.8") != std::string_view::npos);
}

}  // namespace pv2::testing::local_state_test
