// SPDX-License-Identifier: Apache-2.0
//
// Two whole clusters lose their power at the same moment, before one operation of the file system
// after the other: while entries are logged, shipped, logged there, and positions are recorded.
// When all processes are started again the copy has to become equal, and what was acknowledged has
// to be in both.

#include <chrono>

#include "cluster/replication/replication_world.h"

namespace pv2::testing::replication_crash_test {
namespace {

using namespace pv2::testing::replication_world;  // NOLINT: of the test
using cluster::WriteOutcome;

// Every so many operations: the whole test is some seconds.
constexpr std::size_t kStep = 2;

struct Story {
  TwoClusters world{2, 1};
  Rows acknowledged;
  std::map<std::string, int> open;

  /// False: everything was over before the power went out.
  bool run(std::size_t operation) {
    world.add_peer();
    CrashEnv& env = world.source.env;
    const std::size_t end = env.operations() + operation;
    env.crash_before_operation(operation, CrashEnv::TornTail::kRandom);
    for (int i = 0; i < 8; ++i) {
      const std::string row = i % 2 == 0 ? "a" : "z" + std::to_string(i);
      write({.row = row, .value = std::to_string(i)});
      if (i == 5) write({.kind = MutationKind::kDelete, .row = "z1"});
      world.source.run_for(std::chrono::milliseconds(150));
    }
    world.source.run_for(std::chrono::seconds(1));
    const bool was_cut = env.operations() >= end || world.source.servers().empty();
    restart();
    world.run_until_shipped();
    return was_cut;
  }

  void write(Mutation mutation) {
    mutation.family = "f";
    mutation.qualifier = "q";
    ++open[mutation.row];
    world.client->write(kTable, {mutation}, {}, [this, mutation](const WriteOutcome& outcome) {
      --open[mutation.row];
      acknowledged.erase(mutation.row);
      // Of a row with several writes under way nobody knows which one is the last.
      if (outcome.ok() && open[mutation.row] == 0 && mutation.kind == MutationKind::kPut) {
        acknowledged[mutation.row] = mutation.value;
      }
    });
  }

  void restart() {
    for (ClusterWorld* const each : {&world.source, &world.target}) {
      each->kill_master();
      for (const ServerName& server : each->servers()) each->kill_server(server);
    }
    world.source.env.crash(CrashEnv::TornTail::kRandom);
    world.source.env.reboot();
    for (ClusterWorld* const each : {&world.source, &world.target}) {
      each->start_master();
      for (const char* host : {"rs1", "rs2", "rs3"}) each->start_server(host);
    }
    for (ClusterWorld* const each : {&world.source, &world.target}) each->run_until_quiet();
    world.source.run_until([this] {
      for (const auto& [row, count] : open) {
        if (count != 0) return false;
      }
      return true;
    });
  }
};

}  // namespace

TEST_CASE("wherever the power goes out, the copy equals the source after the restart") {
  bool was_cut = true;
  std::size_t cuts = 0;
  for (std::size_t operation = 0; was_cut; operation += kStep) {
    INFO("before operation " << operation);
    Story story;
    was_cut = story.run(operation);
    cuts += was_cut ? 1 : 0;
    const Rows source = story.world.rows_of(story.world.source);
    CHECK(source == story.world.rows_of(story.world.target));
    for (const auto& [row, value] : story.acknowledged) {
      INFO("row " << row);
      CHECK(source.contains(row));
      if (row != "a") CHECK(source.at(row) == value);
    }
    CHECK(story.world.source.disorder().empty());
  }
  CHECK(cuts > 10);
}

}  // namespace pv2::testing::replication_crash_test
