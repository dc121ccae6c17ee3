// SPDX-License-Identifier: Apache-2.0
//
// Queues as files: how they change hands, with the power cut before each operation, and what the
// holders of before can still do.

#include "replication/queue_files.h"

#include <set>

#include "cluster/storage_fixture.h"

namespace pv2::testing::queue_files_test {
namespace {

using namespace cluster;  // NOLINT: the layer under test

const ServerName kOne{"rs1", 1};
const ServerName kTwo{"rs2", 1};
const ServerName kThree{"rs3", 1};

std::set<std::string> names(const Result<std::vector<StoredQueue>>& queues) {
  REQUIRE(queues.status().to_string() == "OK");
  std::set<std::string> all;
  for (const StoredQueue& queue : *queues) {
    all.insert(queue.server.host + ":" + queue.owner.host + "@" +
               std::to_string(queue.position.log) + "+" + std::to_string(queue.position.offset));
  }
  return all;
}

using Names = std::set<std::string>;

}  // namespace

TEST_CASE("a queue is made once, and its position is replaced") {
  Disk disk;
  const QueueFiles queues(disk.files, disk.layout);
  CHECK(queues.make("p", kOne, {2, 10}).value());
  CHECK_FALSE(queues.make("p", kOne, {7, 0}).value());
  CHECK(names(queues.queues("p", kOne)) == Names{"rs1:rs1@2+10"});
  CHECK(queues.record("p", kOne, kOne, {{2, 10}, {3, 0}}).value() == LogPosition{3, 0});
  CHECK(names(queues.all()) == Names{"rs1:rs1@3+0"});
  CHECK(queues.queues("other", kOne)->empty());
  CHECK(queues.take_back("p", kOne).ok());
  CHECK(queues.directories()->empty());
}

TEST_CASE("a queue that was claimed has one holder, and the old one can record nothing") {
  Disk disk;
  const QueueFiles queues(disk.files, disk.layout);
  REQUIRE(queues.make("p", kOne, {1, 5}).ok());
  REQUIRE(queues.make("p", kTwo, {4, 0}).ok());
  REQUIRE(queues.make("p", kThree, {6, 0}).ok());
  CHECK(queues.claim("p", kOne, kTwo).ok());
  CHECK(names(queues.all()) == Names{"rs2:rs1@1+5", "rs2:rs2@4+0", "rs3:rs3@6+0"});
  const auto late = queues.record("p", kOne, kOne, {{1, 5}, {1, 9}});
  CHECK(late.status().code() == StatusCode::kNotFound);
  // Another claimer that comes late has nothing.
  CHECK(queues.claim("p", kOne, kThree).ok());
  CHECK(names(queues.queues("p", kThree)) == Names{"rs3:rs3@6+0"});
  // The claimer dies, and is claimed itself.
  CHECK(queues.claim("p", kTwo, kThree).ok());
  CHECK(names(queues.all()) == Names{"rs3:rs1@1+5", "rs3:rs2@4+0", "rs3:rs3@6+0"});
  CHECK(queues.finish("p", kThree, kOne, {1, 5}).ok());
  CHECK(queues.finish("p", kThree, kOne, {1, 5}).ok());
  CHECK(names(queues.all()) == Names{"rs3:rs2@4+0", "rs3:rs3@6+0"});
}

TEST_CASE("a claimer whose own queues were claimed gets nothing") {
  Disk disk;
  const QueueFiles queues(disk.files, disk.layout);
  REQUIRE(queues.make("p", kOne, {1, 5}).ok());
  CHECK_FALSE(queues.claim("p", kOne, kTwo).ok());
  CHECK(names(queues.all()) == Names{"rs1:rs1@1+5"});
}

TEST_CASE("a queue that was claimed, and made again by a server that is dead, stays where it was") {
  Disk disk;
  const QueueFiles queues(disk.files, disk.layout);
  REQUIRE(queues.make("p", kOne, {1, 5}).ok());
  REQUIRE(queues.make("p", kTwo, {4, 0}).ok());
  REQUIRE(queues.claim("p", kOne, kTwo).ok());
  REQUIRE(queues.make("p", kOne, {9, 99}).ok());
  CHECK(queues.claim("p", kOne, kTwo).ok());
  CHECK(names(queues.all()) == Names{"rs2:rs1@1+5", "rs2:rs2@4+0"});
  CHECK(queues.directories()->size() == 1);
  // What the holder of before has recorded late is safe too.
  REQUIRE(queues.make("p", kOne, {1, 3}).ok());
  CHECK(queues.claim("p", kOne, kTwo).ok());
  CHECK(names(queues.all()) == Names{"rs2:rs1@1+3", "rs2:rs2@4+0"});
}

TEST_CASE("a claim removes a draft, and no queue that it has not seen") {
  Disk disk;
  const QueueFiles queues(disk.files, disk.layout);
  REQUIRE(queues.make("p", kOne, {1, 5}).ok());
  REQUIRE(queues.make("p", kTwo, {4, 0}).ok());
  const std::string directory = disk.layout.queue("p", kOne);
  disk.env.set_contents(directory + "/left~draft", "half");
  REQUIRE(disk.files.remove_directory(directory).ok());  // it is not empty
  CHECK(names(queues.queues("p", kOne)) == Names{"rs1:rs1@1+5"});
  REQUIRE(queues.claim("p", kOne, kTwo).ok());
  CHECK_FALSE(disk.files.exists(directory));
  CHECK(disk.files.remove_directory(directory).ok());
}

TEST_CASE("a claim is finished by whoever repeats it, wherever the power went out") {
  for (const CrashEnv::TornTail torn :
       {CrashEnv::TornTail::kNone, CrashEnv::TornTail::kRandom, CrashEnv::TornTail::kBytes}) {
    bool was_cut = true;
    for (std::size_t at = 0; was_cut; ++at) {
      INFO("before operation " << at);
      Disk disk(at + 1);
      const QueueFiles queues(disk.files, disk.layout);
      REQUIRE(queues.make("p", kOne, {1, 5}).ok());
      REQUIRE(queues.make("p", kTwo, {4, 0}).ok());
      REQUIRE(queues.make("p", kThree, {6, 0}).ok());
      REQUIRE(queues.claim("p", kOne, kTwo).ok());
      disk.env.crash_before_operation(at, torn);
      const Status first = queues.claim("p", kTwo, kThree);
      was_cut = !disk.files.exists(disk.layout.root());
      if (first.ok() && !was_cut) {
        disk.env.crash(torn);
      }
      disk.env.reboot();
      if (first.ok()) {
        CHECK(names(queues.queues("p", kThree)).size() == 3);
      }
      // Somebody has each of them at every moment.
      CHECK(names(queues.all()).size() == 3);
      REQUIRE(queues.claim("p", kTwo, kThree).ok());
      CHECK(names(queues.all()) == Names{"rs3:rs1@1+5", "rs3:rs2@4+0", "rs3:rs3@6+0"});
      CHECK(queues.directories()->size() == 1);
    }
  }
}

TEST_CASE("a claim outlives a power cut when a claimer is killed and another server finishes it") {
  bool was_killed = true;
  for (std::size_t at = 0; was_killed; ++at) {
    INFO("killed before operation " << at);
    Disk disk;
    const QueueFiles queues(disk.files, disk.layout);
    REQUIRE(queues.make("p", kOne, {1, 5}).ok());
    REQUIRE(queues.make("p", kTwo, {4, 0}).ok());
    REQUIRE(queues.make("p", kThree, {6, 0}).ok());
    std::size_t seen = 0;
    disk.env.set_fault([&](CrashEnv::Operation, const std::string& file) {
      return seen++ < at ? leveldb::Status::OK() : leveldb::Status::IOError(file, "killed");
    });
    was_killed = !queues.claim("p", kOne, kTwo).ok();
    disk.env.set_fault(nullptr);
    REQUIRE(queues.claim("p", kOne, kThree).ok());
    disk.env.crash();
    disk.env.reboot();
    Names found = names(queues.all());
    CHECK(found.erase("rs2:rs1@1+5") + found.erase("rs3:rs1@1+5") == 1);
    CHECK(found == Names{"rs2:rs2@4+0", "rs3:rs3@6+0"});
  }
}

TEST_CASE("a shipper replaces and removes no position that a claim has put before its own") {
  Disk disk;
  const QueueFiles queues(disk.files, disk.layout);
  // The late queue of a dead server at one server, and the first one at another.
  REQUIRE(queues.make("p", kOne, {1, 5}).ok());
  REQUIRE(queues.make("p", kTwo, {4, 0}).ok());
  REQUIRE(queues.claim("p", kOne, kTwo).ok());
  REQUIRE(queues.make("p", kOne, {2, 0}).ok());
  REQUIRE(queues.make("p", kThree, {6, 0}).ok());
  REQUIRE(queues.claim("p", kOne, kThree).ok());
  REQUIRE(queues.claim("p", kTwo, kThree).ok());
  const Names all{"rs3:rs1@1+5", "rs3:rs2@4+0", "rs3:rs3@6+0"};
  CHECK(names(queues.all()) == all);

  // The third server has shipped from the late position on.
  CHECK(queues.record("p", kThree, kOne, {{2, 0}, {3, 7}}).value() == LogPosition{1, 5});
  CHECK(queues.finish("p", kThree, kOne, {2, 0}).value() == LogPosition{1, 5});
  CHECK(names(queues.all()) == all);

  CHECK(queues.record("p", kThree, kOne, {{1, 5}, {3, 7}}).value() == LogPosition{3, 7});
  CHECK(queues.finish("p", kThree, kOne, {3, 7}).value() == std::nullopt);
  CHECK(names(queues.all()) == Names{"rs3:rs2@4+0", "rs3:rs3@6+0"});
}

TEST_CASE("a position that cannot be read is told, and hides no other queue") {
  Disk disk;
  const QueueFiles queues(disk.files, disk.layout);
  REQUIRE(queues.make("p", kOne, {1, 5}).ok());
  REQUIRE(queues.make("p", kTwo, {4, 0}).ok());
  REQUIRE(queues.claim("p", kOne, kTwo).ok());
  disk.env.set_contents(disk.layout.queue_position("p", kTwo, kOne), "x");
  const auto found = queues.queues("p", kTwo);
  REQUIRE((found.ok() && found->size() == 2));
  CHECK(found->front().problem.code() == StatusCode::kCorruption);
  CHECK(found->back().problem.ok());
  CHECK(found->back().position == LogPosition{4, 0});
  CHECK(queues.position("p", kTwo, kOne).status().code() == StatusCode::kCorruption);
  CHECK_FALSE(queues.make("p", kTwo, {9, 0}).value());
  CHECK_FALSE(queues.record("p", kTwo, kOne, {{1, 5}, {1, 9}}).ok());
  CHECK_FALSE(queues.finish("p", kTwo, kOne, {1, 9}).ok());
  CHECK(queues.all()->size() == 2);
}

TEST_CASE("a claim goes on past a damaged position, which is kept") {
  Disk disk;
  const QueueFiles queues(disk.files, disk.layout);
  REQUIRE(queues.make("p", kOne, {1, 5}).ok());
  REQUIRE(queues.make("p", kTwo, {4, 0}).ok());
  REQUIRE(queues.make("p", kThree, {6, 0}).ok());
  REQUIRE(queues.claim("p", kOne, kTwo).ok());
  REQUIRE(queues.make("p", kOne, {2, 0}).ok());
  REQUIRE(queues.claim("p", kOne, kThree).ok());
  // Of the two queues of the first server one is damaged.
  const ServerName& damaged = GENERATE_REF(kTwo, kThree);
  disk.env.set_contents(disk.layout.queue_position("p", damaged, kOne), "x");
  REQUIRE(queues.claim("p", kTwo, kThree).ok());
  CHECK(queues.position("p", kThree, kOne).status().code() == StatusCode::kCorruption);
  CHECK(queues.position("p", kThree, kTwo).value() == LogPosition{4, 0});
  CHECK(queues.directories()->size() == 1);
}

}  // namespace pv2::testing::queue_files_test
