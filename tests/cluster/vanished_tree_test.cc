// SPDX-License-Identifier: Apache-2.0
//
// The directory of the cluster vanishes from one machine for a moment. That must not be taken for a
// region that was removed, for logs that were split, or for a region without files: whoever asks
// may fail, and loses nothing. One rule of FileTree sees to it (file_tree.h). It is tested with
// each verb of FileTree first, and then with those who would lose most.

#include "cluster/storage_fixture.h"
#include "cluster/vanishing_env.h"
#include "master/cluster_id.h"
#include "replication/log_reader.h"
#include "storage/peer_files.h"

namespace pv2::testing::vanished_tree_test {
namespace {

using namespace cluster;  // NOLINT: the layer under test

const RegionInfo kLow{whole_table().table, "00000000000000b1", "", "m"};
const RegionInfo kHigh{whole_table().table, "00000000000000b2", "m", ""};
const std::map<std::string, std::string> kRows{{"a", "1"}, {"z", "2"}};

// A tree without a word of the cluster.
struct Files {
  CrashEnv disk;
  VanishingEnv env{disk};
  FileTree all{*disk.as_env(), disk.directory_sync()};
  FileTree files{env, env.sync(), "1", env.open_sync(), TreeWitness{"root", "root/seen"}};

  Files() {
    disk.set_contents("root/seen", "");
    disk.set_contents("root/a/file", "bytes");
    REQUIRE(all.make_directories("root/empty").ok());
  }
  [[nodiscard]] bool has_file() const { return all.exists("root/a/file"); }
};

// The answer is the right one, or says that the files could not be seen.
template <class T>
Check is_answered(const Result<T>& answer, const T& right) {
  const bool is_right = answer.ok() ? *answer == right
                                    : answer.status().code() == StatusCode::kUnavailable ||
                                          answer.status().code() == StatusCode::kIoError;
  return [is_right] { return is_right; };
}

const std::vector<Verb<Files>> kFileVerbs{
    {"list",
     {},
     [](Files& w) {
       return is_answered(w.files.list("root/a"), std::vector<std::string>{"file"});
     }},
    {"is_there", {}, [](Files& w) { return is_answered(w.files.is_there("root/a/file"), true); }},
    {"read",
     {},
     [](Files& w) { return is_answered<std::string>(w.files.read("root/a/file"), "bytes"); }},
    {"read of the witness",
     {},
     [](Files& w) { return is_answered<std::string>(w.files.read("root/seen"), ""); }},
    {"read_part",
     {},
     [](Files& w) {
       return is_answered<std::string>(w.files.read_part("root/a/file", 1, 2), "yt");
     }},
    {"size",
     {},
     [](Files& w) { return is_answered<std::uint64_t>(w.files.size("root/a/file"), 5); }},
    {"rename",
     {},
     [](Files& w) -> Check {
       const Status status = w.files.rename("root/a/file", "root/a/other");
       return [&w, status] {
         return status.ok() ? !w.has_file() : status.code() != StatusCode::kNotFound;
       };
     }},
    {"write",
     {},
     [](Files& w) -> Check {
       const Status status = w.files.write("root/a/file", "new");
       return [status] { return status.code() != StatusCode::kNotFound; };
     }},
    {"write_all",
     {},
     [](Files& w) -> Check {
       const Status status = w.files.write_all({{"root/a/file", "1"}, {"root/b/file", "2"}});
       return [&w, status] { return !status.ok() || w.all.exists("root/b/file"); };
     }},
    {"rename_all",
     {},
     [](Files& w) -> Check {
       const Status status = w.files.rename_all({{"root/a/file", "root/b/file"}});
       return [&w, status] { return !status.ok() || w.all.exists("root/b/file"); };
     }},
    {"remove_file",
     {},
     [](Files& w) -> Check {
       const Status status = w.files.remove_file("root/a/file");
       return [&w, status] { return !status.ok() || !w.has_file(); };
     }},
    {"remove_directory",
     {},
     [](Files& w) -> Check {
       const Status status = w.files.remove_directory("root/empty");
       return [&w, status] { return !status.ok() || !w.all.exists("root/empty"); };
     }},
    {"remove_tree",
     {},
     [](Files& w) -> Check {
       const Status status = w.files.remove_tree("root/a");
       return [&w, status] { return !status.ok() || !w.all.exists("root/a"); };
     }},
    {"sync_directory",
     {},
     [](Files& w) -> Check {
       const Status status = w.files.sync_directory("root/a");
       return [status] { return status.code() != StatusCode::kNotFound; };
     }},
};

/// A server, whose log has a row that no file of the region has.
struct World {
  Disk disk;
  VanishingEnv env{disk.env};
  FileTree files{env, env.sync(), "1", env.open_sync(), disk.witness()};
  const TableDirectories tables{files, disk.layout};
  const LogDirectories logs{files, disk.layout};
  StorageServer dead{disk, 1};
  const TableName table = whole_table().table;

  World() {
    disk.make_table({whole_table()});
    REQUIRE(dead.start().ok());
    REQUIRE(dead.open(whole_table(), 1).ok());
    REQUIRE(dead.write({put("a", "1")}).ok());
    REQUIRE(dead.flush().ok());
    REQUIRE(dead.write({put("z", "2")}).ok());
  }
  [[nodiscard]] LogFile log() const {
    const auto all = disk.logs.logs(dead.name(), cluster::LogKind::kUser);
    REQUIRE((all.ok() && all->size() == 1));
    return all->front();
  }
  Result<SplitCount> split(const FileTree& with) {
    return split_log(with, disk.layout, dead.name(), log());
  }
  Result<std::shared_ptr<Region>> open(const FileTree& with, std::uint64_t opening) {
    return Region::open(with, disk.layout, dead.work, whole_table(),
                        {.families = {"f", "g"}, .descriptor = 1, .opening = opening});
  }
  [[nodiscard]] bool needs_parent() const {
    return disk.tables.references(table)->contains(whole_table().id);
  }
};

void fence(World& world) { REQUIRE(world.disk.logs.fence(world.dead.name()).ok()); }
void fence_and_split(World& world) {
  fence(world);
  REQUIRE(world.split(world.disk.files).ok());
}
void recover_logs(World& world) { REQUIRE(recover(world.disk, world.dead.name()).ok()); }
void close(World& world) { REQUIRE(world.dead.close().ok()); }

Check split_of_logs(World& world) {
  const LogFile log = world.log();
  const bool is_ok = split_log(world.files, world.disk.layout, world.dead.name(), log).ok();
  return [&world, is_ok] {
    const bool is_recovered = *world.disk.tables.has_recovered_edits(whole_table());
    // Whoever repeats it does the whole of it.
    if ((is_ok && !is_recovered) || !world.split(world.disk.files).ok()) return false;
    return rows_of(**world.open(world.disk.files, 2)) == kRows;
  };
}

Check opening(World& world) {
  const auto first = world.open(world.files, 2);
  return [&world, first] {
    if (first.ok() && rows_of(**first) != kRows) return false;
    const auto second = world.open(world.disk.files, 3);
    return second.ok() && rows_of(**second) == kRows;
  };
}

Check daughters(World& world) {
  const bool is_made = world.tables.make_daughters(whole_table(), {kLow, kHigh}).ok();
  return [&world, is_made] {
    if (!is_made) return true;
    if (!world.dead.open(kLow, 2).ok() || !world.dead.open(kHigh, 3).ok()) return false;
    auto rows = rows_of(world.dead.region(kLow.id));
    rows.merge(rows_of(world.dead.region(kHigh.id)));
    return rows == kRows && world.needs_parent();
  };
}

Check raising(World& world) {
  const std::uint64_t sequence = *world.disk.tables.max_sequence(whole_table());
  static_cast<void>(world.tables.raise_max_sequence(kLow, sequence).ok());
  return [&world] { return world.needs_parent(); };
}

Check second_fence(World& world) {
  static_cast<void>(world.logs.fence(world.dead.name()).ok());
  return [&world] {
    fence_and_split(world);  // whoever failed repeats it
    REQUIRE(world.disk.logs.archive(world.dead.name(), world.log()).ok());
    return world.disk.logs.logs(world.dead.name(), cluster::LogKind::kUser).ok();
  };
}

Check archiving(World& world) {
  const auto names =
      *world.disk.files.list(world.disk.layout.region(world.table, whole_table().id));
  const auto file = std::ranges::find_if(names, [](const std::string& name) {
    return ClusterLayout::parse_store_file(name).has_value();
  });
  REQUIRE(file != names.end());
  const Status status = world.tables.archive_table(world.table);
  return [&world, status, name = *file] {
    const ClusterLayout& layout = world.disk.layout;
    const auto has = [&](const std::string& path) { return world.disk.files.exists(path); };
    if (status.ok() && has(layout.table(world.table))) return false;
    return has(layout.store_file(world.table, whole_table().id, name)) !=
           has(layout.archived_file(world.table, whole_table().id, name));
  };
}

Check descriptor(World& world) {
  const TableDescriptor next{world.table, {"f", "h"}};
  const bool is_written = world.tables.write_descriptor(next).ok();
  return [&world, next, is_written] {
    return !is_written || *world.disk.tables.read_descriptor(world.table) == next;
  };
}

Check cluster_id(World& world) {
  static_cast<void>(make_cluster_id(world.files, world.disk.layout).ok());
  return [&world] { return world.disk.env.contents(world.disk.layout.cluster_id()) == "id"; };
}

const std::vector<Verb<World>> kVerbs{
    {"a log is split for regions that are there", fence, split_of_logs},
    {"a region is opened with its files and its recovered edits", fence_and_split, opening},
    {"logs are left to split", fence,
     [](World& world) -> Check {
       const auto found = world.logs.logs(world.dead.name(), cluster::LogKind::kUser);
       return [found] { return !found.ok() || found->size() == 1; };
     }},
    {"a fence is repeated", fence, second_fence},
    {"a directory with a log is not removed", fence,
     [](World& world) -> Check {
       const bool is_removed = world.logs.remove(world.dead.name()).ok();
       return [&world, is_removed] { return !is_removed && world.log().size > 0; };
     }},
    {"edits are still to be recovered", fence_and_split,
     [](World& world) -> Check {
       const auto has_edits = world.tables.has_recovered_edits(whole_table());
       return [has_edits] { return !has_edits.ok() || *has_edits; };
     }},
    {"daughters have the rows of the parent", close, daughters},
    {"a daughter whose sequence is raised keeps its files",
     [](World& world) {
       close(world);
       REQUIRE(world.disk.tables.make_daughters(whole_table(), {kLow}).ok());
     },
     raising},
    {"an archived store file is in the archive", close, archiving},
    {"a new descriptor is the one that counts",
     [](World& world) {
       REQUIRE(world.disk.tables.write_descriptor({world.table, {"f"}}).ok());
     },
     descriptor},
    {"the logs of a dead server are not at their end", recover_logs,
     [](World& world) -> Check {
       const auto part =
           LogReader(world.files, world.disk.layout, world.dead.name()).read({1, 0}, {});
       return [part] { return !part.ok() || !part->entries.empty(); };
     }},
    {"the cluster keeps its id", {}, cluster_id},
};

/// A live server, whose first log is needed still, and whose second one is archived.
struct LiveWorld {
  Disk disk;
  VanishingEnv env{disk.env};
  FileTree files{env, env.sync(), "1", env.open_sync(), disk.witness()};
  StorageServer server{disk, 1, 1};  // a log for each write

  LiveWorld() {
    disk.make_table({kLow, kHigh});
    REQUIRE(server.start().ok());
    REQUIRE(server.open(kLow, 1).ok());
    REQUIRE(server.open(kHigh, 2).ok());
    REQUIRE(server.write({put("a", "1")}, {}, kLow.id).ok());
    REQUIRE(server.write({put("z", "2")}, {}, kHigh.id).ok());
    REQUIRE(server.write({put("b", "3")}, {}, kLow.id).ok());
    REQUIRE(server.flush(kHigh.id).ok());
  }
};

const std::vector<Verb<LiveWorld>> kLiveVerbs{
    {"a log is not passed over",
     {},
     [](LiveWorld& world) -> Check {
       const auto part = LogReader(world.files, world.disk.layout, world.server.name())
                             .read({1, 0}, world.server.log->durable_end());
       return [part] {
         return !part.ok() ||
                (!part->entries.empty() && part->entries.front().region_id == kLow.id);
       };
     }},
};

}  // namespace

TEST_CASE("no verb of a tree takes what has vanished for what is absent") {
  vanish_within(kFileVerbs, "root/seen");
}

TEST_CASE("a tree is asked twice for what is absent, and once for what is there") {
  Files world;
  const auto calls_of = [&](const std::function<void()>& verb) {
    world.env.show();
    verb();
    return world.env.calls();
  };
  CHECK(calls_of([&] { CHECK(world.files.list("root/a")->size() == 1); }) == 1);
  CHECK(calls_of([&] { CHECK(world.files.list("root/none")->empty()); }) == 3);
  CHECK(calls_of([&] { CHECK(*world.files.is_there("root/a")); }) == 1);
  CHECK(calls_of([&] { CHECK_FALSE(*world.files.is_there("root/none")); }) == 4);
  // Another tree has another witness, which nobody knows.
  CHECK(calls_of([&] { CHECK(world.files.list("rooted/none")->empty()); }) == 1);
}

TEST_CASE("another witness than that of before does not show that a tree can be seen") {
  Files world;
  CHECK(*world.files.is_there("root/seen"));
  world.env.leave_below("root/seen", "of a cluster that was once made below the mount point");
  world.env.hide(0, VanishingEnv::kForEver);
  const auto read = world.files.read("root/a/file");
  CHECK(read.status().code() == StatusCode::kUnavailable);
  CHECK_THAT(read.status().to_string(), ContainsSubstring("root/seen is not that of before"));
  CHECK(world.files.is_there("root/seen").status().code() == StatusCode::kUnavailable);
  CHECK(world.files.make_directory("root/b").code() == StatusCode::kUnavailable);
  world.env.show();
  CHECK(*world.files.read("root/a/file") == "bytes");
  CHECK_FALSE(world.all.exists("below/b"));
}

TEST_CASE("nothing is absent and nothing is made in a tree without its witness, but the witness") {
  Files world;
  world.disk.RemoveFile("root/seen");
  CHECK(world.files.list("root/none").status().code() == StatusCode::kUnavailable);
  CHECK(world.files.list("root/empty").status().code() == StatusCode::kUnavailable);
  CHECK(world.files.remove_tree("root/none").code() == StatusCode::kUnavailable);
  CHECK(world.files.make_directories("root/none/at/all").code() == StatusCode::kUnavailable);
  CHECK_FALSE(world.all.exists("root/none"));
  CHECK_FALSE(*world.files.is_there("root/seen"));
  REQUIRE(world.files.write("root/seen", "").ok());
  CHECK(world.files.list("root/none")->empty());
}

TEST_CASE("nobody loses anything by one disappearance of the cluster") {
  vanish_within(kVerbs, "root/master/id");
}

TEST_CASE("a reader of a live server's logs passes over none that has vanished") {
  vanish_within(kLiveVerbs, "root/master/id");
}

TEST_CASE("a cluster has its id before anything else") {
  Disk disk;
  disk.env.RemoveFile(disk.layout.cluster_id());
  REQUIRE(make_cluster_id(disk.files, disk.layout).ok());
  CHECK(disk.env.contents(disk.layout.cluster_id()).size() == 32);
}

TEST_CASE("a fence makes no directory where the cluster is not mounted") {
  World world;
  // The file system below the mount point is empty, and can be written.
  Disk below;
  below.env.RemoveFile(below.layout.cluster_id());
  CHECK(below.logs.fence(world.dead.name()).code() == StatusCode::kUnavailable);
  CHECK(below.env.files().empty());
  const auto looked = world.disk.logs.logs(world.dead.name(), cluster::LogKind::kUser);
  CHECK(looked.status().code() == StatusCode::kUnavailable);
  CHECK_THAT(looked.status().to_string(), ContainsSubstring("is not fenced"));
}

TEST_CASE("a removal that sees nothing does not say that it has removed something") {
  World world;
  fence(world);
  REQUIRE(PeerFiles(world.disk.files, world.disk.layout).write({"p", {"/other", {}}}).ok());
  world.env.hide(0, VanishingEnv::kForEver);
  const StatusCode unseen = StatusCode::kUnavailable;
  CHECK(PeerFiles(world.files, world.disk.layout).remove("p").code() == unseen);
  CHECK(world.tables.archive_table(world.table).code() == unseen);
  CHECK(world.logs.remove(world.dead.name()).code() == unseen);
}

TEST_CASE("a descriptor that is out of sight does not seem to change all the time") {
  World world;
  world.env.hide(0, VanishingEnv::kForEver);
  const Status unseen = world.tables.read_descriptor(world.table).status();
  CHECK(unseen.code() == StatusCode::kUnavailable);
  CHECK_THAT(unseen.to_string(), ContainsSubstring("look whether root is mounted"));
}

}  // namespace pv2::testing::vanished_tree_test
