// SPDX-License-Identifier: Apache-2.0
//
// Files of somebody else among the directories of a cluster: a note, or what an editor or a file
// manager leaves. What would be in such a "directory" is not there, and nothing else is wrong.

#include "cluster/storage_fixture.h"
#include "replication/queue_files.h"
#include "storage/peer_files.h"
#include "support/temporary_directory.h"

namespace pv2::testing::stray_file_test {
namespace {

using namespace cluster;  // NOLINT: the layer under test

const ServerName kOne{"rs1", 1};

/// On the real file system.
struct World {
  TemporaryDirectory directory;
  FileTree files = FileTree::real("1");
  ClusterLayout layout{directory.path("root")};

  std::string put_note(const std::string& where) const {
    REQUIRE(files.make_directories(where).ok());
    REQUIRE(files.write(where + "/notes.txt", "of somebody").ok());
    return where + "/notes.txt";
  }
};

}  // namespace

TEST_CASE("nothing is at a path that goes through a file") {
  World world;
  const std::string note = world.put_note(world.layout.root());
  const std::string path = note + "/a";
  CHECK_FALSE(world.files.is_there(path).value());
  CHECK(world.files.read(path).status().code() == StatusCode::kNotFound);
  CHECK(world.files.size(path).status().code() == StatusCode::kNotFound);
  CHECK(world.files.list(note)->empty());
  CHECK(world.files.list(path)->empty());
  CHECK(world.files.remove_file(path).ok());
  CHECK(world.files.remove_tree(path).ok());
  CHECK_FALSE(world.files.write(path, "x").ok());
  CHECK(world.files.read(note).value() == "of somebody");
}

TEST_CASE("a stray file among the peers, or among their queues, is no peer") {
  World world;
  const PeerFiles peers(world.files, world.layout);
  const QueueFiles queues(world.files, world.layout);
  REQUIRE(peers.write({.id = "p", .config = {"/other", {}}}).ok());
  REQUIRE(queues.make("p", kOne, {1, 5}).ok());
  for (const std::string& where :
       {world.layout.peers(), world.layout.queues(), world.layout.queues("p")}) {
    world.put_note(where);
  }

  CHECK(peers.ids().value() == std::vector<std::string>{"p"});
  const auto found = peers.list();
  REQUIRE(found.ok());
  CHECK(found->unreadable.empty());
  CHECK_FALSE(peers.read("notes.txt")->has_value());
  const auto all = queues.all();
  REQUIRE(all.status().to_string() == "OK");
  CHECK(all->size() == 1);
  CHECK(queues.remove_all("notes.txt", kOne).ok());
}

}  // namespace pv2::testing::stray_file_test
