// SPDX-License-Identifier: Apache-2.0
//
// Directories of tables: layouts and archives that a power cut interrupts anywhere, versions of
// descriptors, references, names, and the split of logs into region directories.

#include "storage/table_directories.h"

#include <functional>
#include <string>
#include <vector>

#include "storage_fixture.h"
#include "support/temporary_directory.h"

namespace pv2::testing::table_directories_test {
namespace {

const TableName kTable{"default", "t"};

std::vector<RegionInfo> three_regions() {
  return {{kTable, "00000000000000a1", "", "b"},
          {kTable, "00000000000000a2", "b", "c"},
          {kTable, "00000000000000a3", "c", ""}};
}

/// Repeats `act` after a power cut before each of its operations, until it succeeds; `prepare`
/// makes a new disk ready.
template <class Prepare, class Act, class Check>
void at_every_operation(const Prepare& prepare, const Act& act, const Check& check) {
  for (const auto torn : {CrashEnv::TornTail::kNone, CrashEnv::TornTail::kRandom}) {
    for (std::size_t at = 0;; ++at) {
      INFO("power cut before operation " << at);
      Disk disk(at + 1);
      prepare(disk);
      disk.env.crash_before_operation(at, torn);
      const bool ended = act(disk).ok();
      if (!ended) {
        disk.env.reboot();
        disk.env.crash_before_operation(at / 2, torn);  // and once more
        if (!act(disk).ok()) {
          disk.env.reboot();
          const Status status = act(disk);
          INFO(status.to_string());
          REQUIRE(status.ok());
        }
      }
      disk.env.crash(torn);  // what is there must be durable
      disk.env.reboot();
      check(disk);
      if (ended) break;
    }
  }
}

}  // namespace

TEST_CASE("cluster: a layout that was interrupted anywhere is completed by the next call") {
  const TableDescriptor descriptor{kTable, {"f", "g"}};
  at_every_operation(
      [](Disk& disk) {
        // Something of another attempt, with other regions.
        REQUIRE(disk.tables.make_region({kTable, "00000000000000ff", "", ""}).ok());
      },
      [&](Disk& disk) { return disk.tables.write_layout(descriptor, three_regions()); },
      [&](Disk& disk) {
        REQUIRE(*disk.tables.regions(kTable) == three_regions());
        REQUIRE(*disk.tables.read_descriptor(kTable) == descriptor);
        REQUIRE(!disk.files.exists(disk.layout.region(kTable, "00000000000000ff")));
      });
}

namespace {

/// A disk on which some files cannot be opened for reading.
class UnreadableEnv final : public leveldb::EnvWrapper {
 public:
  explicit UnreadableEnv(CrashEnv& env) : EnvWrapper(&env) {}
  leveldb::Status NewSequentialFile(const std::string& file,
                                    leveldb::SequentialFile** result) override {
    if (!unreadable.empty() && file.ends_with(unreadable)) return failure(file);
    return target()->NewSequentialFile(file, result);
  }
  std::string unreadable;
  std::function<leveldb::Status(const std::string&)> failure = [](const std::string& file) {
    return leveldb::Status::IOError(file, "Input/output error");
  };
};

}  // namespace

TEST_CASE("cluster: a descriptor that cannot be read now is not taken for damaged") {
  Disk disk;
  UnreadableEnv env(disk.env);
  const cluster::FileTree files(env, disk.env.directory_sync());
  const cluster::TableDirectories tables(files, disk.layout);
  REQUIRE(disk.tables.write_descriptor({kTable, {"f"}}).ok());
  const std::string old = disk.env.contents(disk.layout.descriptor(kTable, 1));
  REQUIRE(disk.tables.write_descriptor({kTable, {"f", "g"}}).ok());
  disk.env.set_contents(disk.layout.descriptor(kTable, 1), old);  // a crash has left it

  env.unreadable = disk.layout.descriptor(kTable, 2);
  REQUIRE(tables.read_descriptor(kTable).status().code() == StatusCode::kIoError);

  // One that is gone was replaced meanwhile.
  env.failure = [&](const std::string& file) {
    env.unreadable.clear();
    REQUIRE(disk.tables.write_descriptor({kTable, {"h"}}).ok());
    return leveldb::Status::NotFound(file);
  };
  REQUIRE(tables.read_descriptor(kTable)->families == std::vector<std::string>{"h"});
}

TEST_CASE("cluster: a table has a descriptor at every moment of its change") {
  const TableDescriptor old{kTable, {"f"}};
  const TableDescriptor changed{kTable, {"f", "g"}};
  at_every_operation([&](Disk& disk) { REQUIRE(disk.tables.write_descriptor(old).ok()); },
                     [&](Disk& disk) {
                       const auto present = disk.tables.read_descriptor(kTable);
                       REQUIRE(present.ok());
                       REQUIRE((*present == old || *present == changed));
                       return disk.tables.write_descriptor(changed);
                     },
                     [&](Disk& disk) {
                       REQUIRE(*disk.tables.read_descriptor(kTable) == changed);
                       disk.env.set_contents(disk.layout.descriptor(kTable, 9), "damaged");
                       REQUIRE(*disk.tables.read_descriptor(kTable) == changed);
                       REQUIRE(disk.tables.write_descriptor(old).ok());
                       REQUIRE(*disk.tables.read_descriptor(kTable) == old);
                       REQUIRE(disk.files.exists(disk.layout.descriptor(kTable, 10)));
                     });
}

TEST_CASE("cluster: the store files of an archived table are all in the archive") {
  at_every_operation(
      [](Disk& disk) {
        disk.make_table(three_regions());
        StorageServer server(disk, 1);
        REQUIRE(server.start().ok());
        for (const RegionInfo& info : three_regions()) {
          REQUIRE(server.open(info, 1).ok());
          const std::string row = info.start_key.empty() ? "a" : info.start_key;
          REQUIRE(server.write({put(row, "1")}, {}, info.id).ok());
          REQUIRE(server.close(info.id).ok());
        }
      },
      [](Disk& disk) { return disk.tables.archive_table(kTable); },
      [](Disk& disk) {
        REQUIRE(disk.tables.tables()->empty());
        for (const RegionInfo& info : three_regions())
          REQUIRE(disk.files.exists(disk.layout.archived_file(kTable, info.id, "f1-1")));
        REQUIRE(disk.tables.read_descriptor(kTable).status().code() == StatusCode::kNotFound);
      });
}

TEST_CASE("cluster: a file that a killed process moved to the archive is made durable there") {
  const std::string id = whole_table().id;
  bool is_killed = true;
  for (std::size_t at = 0; is_killed; ++at) {
    INFO("killed before operation " << at);
    Disk disk;
    disk.make_table({whole_table()});
    disk.env.set_contents(disk.layout.store_file(kTable, id, "f1-1"), "cells");
    std::size_t operations = 0;
    disk.env.set_fault([&](CrashEnv::Operation, const std::string& file) {
      return operations++ < at ? leveldb::Status::OK() : leveldb::Status::IOError(file, "killed");
    });
    is_killed = !disk.tables.archive_regions(kTable, {id}).ok();
    disk.env.set_fault(nullptr);

    REQUIRE(disk.tables.archive_regions(kTable, {id}).ok());
    disk.env.crash();
    disk.env.reboot();

    REQUIRE(*disk.files.read(disk.layout.archived_file(kTable, id, "f1-1")) == "cells");
    REQUIRE(disk.tables.region_ids(kTable)->empty());
  }
}

TEST_CASE("cluster: a table of many regions is archived with a few syncs") {
  constexpr int kRegions = 100;
  Disk disk;
  std::vector<RegionInfo> regions;
  for (int i = 0; i < kRegions; ++i) {
    const std::string row = std::to_string(1000 + i);
    regions.push_back({kTable, "r" + row, i == 0 ? "" : row, ""});
    if (i > 0) regions[i - 1].end_key = row;
  }
  disk.make_table(regions);
  for (const RegionInfo& info : regions)
    disk.env.set_contents(disk.layout.store_file(kTable, info.id, "f1-1"), "cells");
  std::size_t syncs = 0;
  disk.env.set_fault([&](CrashEnv::Operation operation, const std::string&) {
    if (operation == CrashEnv::Operation::kSync) ++syncs;
    return leveldb::Status::OK();
  });

  REQUIRE(disk.tables.archive_table(kTable).ok());

  CHECK(syncs < 15);
  for (const RegionInfo& info : regions)
    REQUIRE(disk.files.exists(disk.layout.archived_file(kTable, info.id, "f1-1")));
}

TEST_CASE("cluster: what one half has deleted does not come back when the halves are merged") {
  const RegionInfo parent = whole_table();
  const RegionInfo low{kTable, "00000000000000b1", "", "m"};
  const RegionInfo high{kTable, "00000000000000b2", "m", ""};
  const RegionInfo merged{kTable, "00000000000000c1", "", ""};
  const std::vector<RegionInfo> again{{kTable, "00000000000000d1", "", "c"},
                                      {kTable, "00000000000000d2", "c", ""}};
  Disk disk;
  disk.make_table({parent});
  StorageServer server(disk, 1);
  REQUIRE(server.start().ok());
  REQUIRE(server.open(parent, 1).ok());
  for (const char* row : {"a", "b", "x", "z"}) REQUIRE(server.write({put(row, "old")}).ok());
  REQUIRE(server.close().ok());
  REQUIRE(disk.tables.make_daughters(parent, {low, high}).ok());
  REQUIRE(server.open(low, 2).ok());
  REQUIRE(server.open(high, 3).ok());
  REQUIRE(server.write({erase("a")}, {}, low.id).ok());
  REQUIRE(server.write({put("b", "new")}, {}, low.id).ok());
  REQUIRE(server.write({erase("z")}, {}, high.id).ok());
  // One half forgets the tombstone with the file that it hides; the other half still has that file.
  const RegionInfo compacted = GENERATE(true, false) ? low : high;
  CAPTURE(compacted.id);
  REQUIRE(server.flush(low.id).ok());
  REQUIRE(server.flush(high.id).ok());
  REQUIRE(server.compact({}, compacted.id).ok());
  REQUIRE(server.close(low.id).ok());
  REQUIRE(server.close(high.id).ok());
  REQUIRE(disk.tables.make_merged({low, high}, merged).ok());

  REQUIRE(server.open(merged, 4).ok());
  using Rows = std::map<std::string, std::string>;
  REQUIRE(rows_of(server.region(merged.id)) == Rows{{"b", "new"}, {"x", "old"}});
  const bool compacts = GENERATE(true, false);
  CAPTURE(compacts);
  if (compacts) REQUIRE(server.compact({}, merged.id).ok());
  REQUIRE(server.close(merged.id).ok());
  REQUIRE(disk.tables.make_daughters(merged, again).ok());
  REQUIRE(server.open(again[0], 5).ok());
  REQUIRE(server.open(again[1], 6).ok());
  REQUIRE(rows_of(server.region(again[0].id)) == Rows{{"b", "new"}});
  REQUIRE(rows_of(server.region(again[1].id)) == Rows{{"x", "old"}});
}

TEST_CASE("cluster: daughters read the files of a parent that is in the archive already") {
  const RegionInfo parent = whole_table();
  const RegionInfo low{kTable, "00000000000000b1", "", "m"};
  const RegionInfo high{kTable, "00000000000000b2", "m", ""};
  Disk disk;
  disk.make_table({parent});
  StorageServer server(disk, 1);
  REQUIRE(server.start().ok());
  REQUIRE(server.open(parent, 1).ok());
  REQUIRE(server.write({put("a", "1")}, cluster::WriteNonce{{1, 1}, {}, {}}).ok());
  REQUIRE(server.write({put("z", "2")}, cluster::WriteNonce{{1, 2}, {}, {}}).ok());
  REQUIRE(server.close().ok());
  REQUIRE(disk.tables.make_daughters(parent, {low, high}).ok());
  REQUIRE(*disk.tables.max_sequence(low) == *disk.tables.max_sequence(parent));
  REQUIRE(*disk.tables.has_references(high));
  REQUIRE(disk.tables.references(kTable)->at(parent.id).size() == 2);
  REQUIRE(disk.tables.archive_regions(kTable, {parent.id}).ok());

  REQUIRE(server.open(low, 2).ok());
  REQUIRE(server.open(high, 3).ok());

  REQUIRE(rows_of(server.region(low.id)) == std::map<std::string, std::string>{{"a", "1"}});
  REQUIRE(rows_of(server.region(high.id)) == std::map<std::string, std::string>{{"z", "2"}});
  REQUIRE(server.region(low.id).nonces()->size() == 1);
  REQUIRE(server.region(low.id).nonces()->front().nonce.value == 1);
  REQUIRE(server.region(high.id).nonces()->front().nonce.value == 2);
  REQUIRE(server.write({put("a", "3")}, {}, high.id).status().code() ==
          StatusCode::kFailedPrecondition);
  // Too late: the daughter is open, and its list stays.
  REQUIRE(server.write({put("b", "4")}, {}, low.id).ok());
  REQUIRE(server.compact({}, low.id).ok());
  REQUIRE(!server.region(low.id).has_references());
  REQUIRE(disk.tables.raise_max_sequence(low, 99).code() == StatusCode::kFailedPrecondition);
}

TEST_CASE("cluster: a sequence that is raised again after a failed sync survives a power cut") {
  Disk disk;
  const RegionInfo region = whole_table();
  disk.make_table({region});
  disk.env.set_fault([&](CrashEnv::Operation operation, const std::string& file) {
    const bool hit = operation == CrashEnv::Operation::kSync &&
                     file == disk.layout.region(region.table, region.id);
    return hit ? leveldb::Status::IOError(file, "Too many open files") : leveldb::Status::OK();
  });
  REQUIRE_FALSE(disk.tables.raise_max_sequence(region, 99).ok());
  disk.env.set_fault(nullptr);

  REQUIRE(disk.tables.raise_max_sequence(region, 99).ok());

  disk.env.crash();
  disk.env.reboot();
  REQUIRE(*disk.tables.max_sequence(region) == 99);
}

TEST_CASE("cluster: a log is split again into the same bytes, and without regions that are gone") {
  Disk disk;
  disk.make_table(three_regions());
  StorageServer server(disk, 1);
  REQUIRE(server.start().ok());
  for (const RegionInfo& info : three_regions()) {
    REQUIRE(server.open(info, 1).ok());
    const std::string row = info.start_key.empty() ? "a" : info.start_key;
    REQUIRE(server.write({put(row, "1")}, {}, info.id).ok());
    REQUIRE(server.write({increment(row + "n", 2)}, {}, info.id).ok());
  }
  REQUIRE(server.flush(three_regions()[1].id).ok());
  REQUIRE(disk.tables.remove_regions(kTable, {three_regions()[2].id}).ok());
  REQUIRE(disk.logs.fence(server.name()).ok());
  const auto logs = disk.logs.logs(server.name(), cluster::LogKind::kUser);
  REQUIRE(logs.ok());

  const auto count = split_log(disk.files, disk.layout, server.name(), logs->front());
  REQUIRE(count.ok());
  REQUIRE(count->entries == 6);
  REQUIRE(count->kept == 2);
  REQUIRE(count->regions == 1);
  const std::string path = disk.layout.recovered_file(kTable, three_regions()[0].id, "rs1,1,u1");
  const std::string bytes = disk.env.contents(path);
  REQUIRE(!bytes.empty());
  REQUIRE(*disk.tables.has_recovered_edits(three_regions()[0]));
  REQUIRE(!*disk.tables.has_recovered_edits(three_regions()[1]));
  REQUIRE(split_log(disk.files, disk.layout, server.name(), logs->front()).ok());

  REQUIRE(disk.env.contents(path) == bytes);
  REQUIRE(!disk.files.exists(disk.layout.region(kTable, three_regions()[2].id)));
  REQUIRE(disk.logs.remove(server.name()).code() == StatusCode::kFailedPrecondition);
  REQUIRE(disk.logs.archive(server.name(), logs->front()).ok());
  REQUIRE(disk.logs.archive(server.name(), logs->front()).ok());
  REQUIRE(split_log(disk.files, disk.layout, server.name(), logs->front()).status().code() ==
          StatusCode::kNotFound);
  REQUIRE(disk.logs.remove(server.name()).ok());
}

TEST_CASE("cluster: what a server appended after the look at its log does not come back") {
  Disk disk;
  disk.make_table({whole_table()});
  StorageServer server(disk, 1);
  REQUIRE(server.start().ok());
  REQUIRE(server.open(whole_table(), 1).ok());
  REQUIRE(server.write({put("a", "1")}).ok());
  REQUIRE(disk.logs.fence(server.name()).ok());
  const auto logs = disk.logs.logs(server.name(), cluster::LogKind::kUser);
  REQUIRE(logs.ok());
  REQUIRE(server.write({put("b", "2")}).status().code() == StatusCode::kFenced);

  const auto count = split_log(disk.files, disk.layout, server.name(), logs->front());

  REQUIRE(count.ok());
  REQUIRE(count->entries == 1);
  // Nor is it in the log any more.
  REQUIRE(*disk.logs.logs(server.name(), cluster::LogKind::kUser) == *logs);
}

TEST_CASE("cluster: a namespace with a table is not removed") {
  Disk disk;
  REQUIRE(disk.tables.make_namespace("a").ok());
  REQUIRE(disk.tables.write_descriptor({{"a", "t"}, {"f"}}).ok());
  REQUIRE(disk.tables.remove_namespace("a").code() == StatusCode::kFailedPrecondition);
  REQUIRE(disk.tables.archive_table({"a", "t"}).ok());
  REQUIRE(disk.tables.remove_namespace("a").ok());
  REQUIRE(disk.tables.remove_namespace("a").ok());
  REQUIRE(disk.tables.namespaces()->empty());
}

TEST_CASE("cluster: any name is one component of a path, and is read back") {
  using cluster::ClusterLayout;
  for (const std::string name : {"t", "", ".", "..", "a/b", ".descriptors", "t~", "%", "%41",
                                 "t.new", "\xC3\xA4", "rs1:16020,7", "a b"}) {
    const std::string encoded = ClusterLayout::encode_name(name);
    INFO(name << " is " << encoded);
    REQUIRE(ClusterLayout::decode_name(encoded) == name);
    REQUIRE(!encoded.empty());
    REQUIRE(encoded[0] != '.');
    REQUIRE(encoded.find_first_of("/~") == std::string::npos);
  }
  const auto fenced = ClusterLayout::parse_log_directory("rs1%3A16020,7-splitting");
  REQUIRE(fenced);
  REQUIRE(fenced->is_fenced);
  REQUIRE(fenced->server == ServerName{"rs1:16020", 7});
}

TEST_CASE("cluster: the files of the machine are written, renamed and removed as those of tests") {
  const TemporaryDirectory directory;
  const cluster::FileTree files = cluster::FileTree::real("test");
  const std::string root = directory.path("root");
  REQUIRE(files.list(root + "/none")->empty());
  REQUIRE(files.make_directories(root + "/a/b").ok());
  REQUIRE(files.write(root + "/a/b/x", "1").ok());
  REQUIRE(files.write(root + "/a/b/x", "22").ok());
  REQUIRE(*files.size(root + "/a/b/x") == 2);
  REQUIRE(files.make_directory(root + "/c/d").code() == StatusCode::kNotFound);
  REQUIRE(files.rename(root + "/a", root + "/c").ok());
  REQUIRE(files.rename(root + "/a", root + "/e").code() == StatusCode::kNotFound);
  REQUIRE(*files.read(root + "/c/b/x") == "22");
  REQUIRE(*files.list(root) == std::vector<std::string>{"c"});
  REQUIRE(files.read(root + "/none").status().code() == StatusCode::kNotFound);

  REQUIRE(files.remove_tree(root + "/c").ok());
  REQUIRE(files.remove_tree(root + "/c").ok());
  REQUIRE(files.list(root)->empty());
}

}  // namespace pv2::testing::table_directories_test
