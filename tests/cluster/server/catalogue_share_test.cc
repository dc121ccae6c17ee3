// SPDX-License-Identifier: Apache-2.0
//
// What users ask of a server neither stops the catalogue's region on it, nor takes more memory than
// the server may have.

#include <pv2/procedures/init_meta.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "cluster/server/region_world.h"

namespace pv2::testing::catalogue_share_test {
namespace {

using namespace region_world;  // NOLINT
using namespace std::chrono_literals;

/// The catalogue's region and one of a user on one server.
struct SharedServer : World {
  ServerName server;

  explicit SharedServer(std::function<void(RegionServerOptions&)> tune = {}) {
    make_table(meta_table(), meta_descriptor().families, {meta_region()});
    server = start("rs1", std::move(tune));
    open(meta_region(), server);
    open(kRegion, server);
  }
  CallOutcome write_catalogue(std::uint64_t number) {
    const std::string family = meta_descriptor().families.front();
    const Mutation put{MutationKind::kPut, "row", family, "q", std::string(100, 'v')};
    return call(server, kRegionWrite, encoded(WriteRequest{meta_region().id, {put}, epoch}),
                once(number));
  }
  /// Begins writes of a user. What is refused for want of memory is sent again for a second.
  void begin_writes(int count, const std::function<std::string(int)>& body) {
    for (int i = 0; i < count; ++i) {
      process(server).link->call(
          std::string(kRegionWrite), body(i), once(1000 + static_cast<std::uint64_t>(i), 1s),
          [refused = refused](const CallOutcome& outcome) { *refused += outcome.ok() ? 0 : 1; });
    }
    settle();
  }

  /// What the user's region has.
  std::uint64_t user_bytes() {
    const auto status = process(server).server->status();
    return std::ranges::find(status.regions, kRegion.id,
                             [](const RegionStatus& region) { return region.region.id; })
        ->bytes;
  }

  std::shared_ptr<std::size_t> refused = std::make_shared<std::size_t>(0);
};

}  // namespace

TEST_CASE("users who fill the memory for nonces do not stop the catalogue") {
  SharedServer world([](RegionServerOptions& options) { options.nonce_bytes_max = 4000; });
  world.begin_writes(100, [](int) { return add_body("a"); });
  world.run_for(2s);
  REQUIRE(*world.refused > 50);

  CHECK(world.write_catalogue(1).ok());
}

TEST_CASE("users who fill the memory for rows do not stop the catalogue") {
  SharedServer world([](RegionServerOptions& options) { options.memory_max = 10'000; });
  world.process(world.server).holds_work = true;  // no flush comes to an end
  world.begin_writes(100, [](int) { return put_body("a", std::string(1000, 'v')); });

  CHECK(world.write_catalogue(1).ok());
  CHECK(world.user_bytes() > 10'000);
  CHECK(world.user_bytes() < 30'000);
  world.process(world.server).holds_work = false;
}

TEST_CASE("calls of users that wait do not stop the catalogue") {
  SharedServer world;
  world.process(world.server).holds_calls = true;
  world.begin_writes(10, [](int) { return add_body("a"); });

  CHECK(world.write_catalogue(1).ok());
  world.process(world.server).holds_calls = false;
}

TEST_CASE("an append takes the memory of the value that it makes") {
  SharedServer world([](RegionServerOptions& options) { options.memory_max = 1U << 20; });
  const std::string large(500'000, 'v');
  REQUIRE(world.call(world.server, kRegionWrite, put_body("a", large), once(1)).ok());
  ServerProcess& process = world.process(world.server);
  process.holds_work = true;
  process.holds_calls = true;
  const Mutation append{MutationKind::kAppend, "a", "f", "q", "x"};
  world.begin_writes(20, [&](int) { return encoded(WriteRequest{"r1", {append}, 0}); });
  const std::size_t before = world.user_bytes();
  process.holds_calls = false;
  world.settle();

  CHECK(world.user_bytes() > before);
  CHECK(world.user_bytes() < 4U << 20);
  process.holds_work = false;
  world.settle();
}

}  // namespace pv2::testing::catalogue_share_test
