// SPDX-License-Identifier: Apache-2.0
//
// A store whose files, or whose whole directory, cannot be seen for a moment: it is refused, or
// opens with every row. What cannot be seen is never taken for what is not there.

#include <leveldb/env.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "older_store.h"
#include "pv2/store/segment_files.h"
#include "store_fixture.h"
#include "store_lock.h"
#include "support/catch.h"
#include "support/sight_env.h"
#include "system_env.h"

namespace pv2::testing::out_of_sight_test {
namespace {

using Look = SightEnv::Look;

// A file system, and what a store sees of it.
struct Machine {
  CrashEnv disk;
  SightEnv sight{disk};

  [[nodiscard]] LevelDbOptions options() {
    LevelDbOptions options = on_crash_env(disk);
    options.env = static_cast<leveldb::Env*>(&sight);
    return options;
  }
};

// Each life but the first moves the rows of the one before into the database.
void write_lives(CrashEnv& disk, int lives, int rows) {
  for (int life = 0; life < lives; ++life) {
    Writer writer(disk);
    REQUIRE(writer.open().ok());
    for (int i = 0; i < rows; ++i) {
      REQUIRE(writer.write(std::to_string(life) + "-" + std::to_string(i)).ok());
    }
    writer.store().close();
  }
}

// Opens a store on a copy of `disk` of which some looks are hidden. True: it has opened, with all
// its rows, and has them and one more when it is opened again. False: it was refused; then nothing
// was changed, and all is there when it is in sight again.
bool opens(const CrashEnv& disk, const SightEnv::Sight& hides) {
  Machine machine;
  copy_files(disk, machine.disk);
  const std::size_t rows = [&] {
    Writer writer(machine.disk);
    REQUIRE(writer.open().ok());
    return load_rows(writer.store()).size();
  }();
  const std::size_t operations = machine.disk.operations();
  machine.sight.set_sight(hides);
  bool opened = false;
  {
    Writer writer(machine.options());
    const Status status = writer.open();
    machine.sight.set_sight({});
    opened = status.ok();
    INFO(status.to_string());
    if (opened) {
      REQUIRE(load_rows(writer.store()).size() == rows);
      REQUIRE(writer.write("one more").ok());
      writer.store().close();
    } else {
      REQUIRE(status.code() != StatusCode::kNotFound);
      REQUIRE(machine.disk.operations() == operations);
    }
  }
  Writer again(machine.disk);
  REQUIRE(again.open().ok());
  REQUIRE(load_rows(again.store()).size() == rows + (opened ? 1 : 0));
  return opened;
}

// How many looks of which `is_meant` says yes an opening makes.
template <class IsMeant>
int count_looks(const CrashEnv& disk, IsMeant is_meant) {
  int looks = 0;
  REQUIRE(opens(disk, [&](Look look, const std::string& file) {
    looks += is_meant(look, file) ? 1 : 0;
    return leveldb::Status::OK();
  }));
  return looks;
}

constexpr auto every_look = [](Look, const std::string&) { return true; };
constexpr auto is_list = [](Look look, const std::string&) { return look == Look::kList; };

TEST_CASE("a store that is out of sight for up to three looks is refused, or opens with all rows") {
  const int lives = GENERATE(1, 2, 3);
  const int width = GENERATE(1, 2, 3);
  CrashEnv disk;
  write_lives(disk, lives, 20);
  const int looks = count_looks(disk, every_look);
  for (int first = 0; first < looks; ++first) {
    INFO("lives " << lives << ", looks " << first << " to " << first + width - 1 << " of "
                  << looks);
    int at = 0;
    opens(disk, [&](Look, const std::string& file) {
      const bool hides = at >= first && at < first + width;
      ++at;
      return hides ? SightEnv::hidden(file) : leveldb::Status::OK();
    });
  }
}

TEST_CASE("a list that is empty for a moment, with marks that cannot be seen, loses no row") {
  const int lives = GENERATE(1, 2, 3);
  const int width = GENERATE(1, 2);
  CrashEnv disk;
  write_lives(disk, lives, 20);
  const int lists = count_looks(disk, is_list);
  REQUIRE(lists >= 4);
  int refused = 0;
  for (int first = 0; first < lists; ++first) {
    INFO("lives " << lives << ", lists " << first << " to " << first + width - 1 << " of "
                  << lists);
    int at = 0;
    const bool opened = opens(disk, [&](Look look, const std::string& file) {
      if (file.ends_with("PV2-DURABLE")) return SightEnv::hidden(file);
      if (look != Look::kList) return leveldb::Status::OK();
      const bool hides = at >= first && at < first + width;
      ++at;
      return hides ? SightEnv::hidden(file) : leveldb::Status::OK();
    });
    refused += opened ? 0 : 1;
  }
  CHECK(refused >= 3);  // of the database's logs, by LevelDB itself, and of the step log
}

TEST_CASE("a list that is empty for a moment loses no row of a store without a step log") {
  CrashEnv disk;
  write_older_store(disk, 1);
  const int lists = count_looks(disk, is_list);
  int refused = 0;
  for (int hidden = 0; hidden < lists; ++hidden) {
    INFO("list " << hidden << " of " << lists);
    int at = 0;
    const bool opened = opens(disk, [&](Look look, const std::string& file) {
      const bool hides = look == Look::kList && at++ == hidden;
      return hides ? SightEnv::hidden(file) : leveldb::Status::OK();
    });
    refused += opened ? 0 : 1;
  }
  CHECK(refused >= 3);
}

// access() fails for want of memory, too.
TEST_CASE("a file is not missing because access() has failed") {
  const int lives = GENERATE(1, 3);
  CrashEnv disk;
  write_lives(disk, lives, 20);
  const auto is_access = [](Look look, const std::string& file) {
    // LevelDB itself looks for CURRENT so, and refuses to open.
    return look == Look::kExists && !file.ends_with("CURRENT");
  };
  const int looks = count_looks(disk, is_access);
  for (int hidden = 0; hidden < looks; ++hidden) {
    INFO("lives " << lives << ", look " << hidden << " of " << looks);
    int at = 0;
    CHECK(opens(disk, [&](Look look, const std::string& file) {
      const bool hides = is_access(look, file) && at++ == hidden;
      return hides ? leveldb::Status::IOError(file, "no memory") : leveldb::Status::OK();
    }));
  }
}

TEST_CASE("marks that cannot be read are no store without marks") {
  CrashEnv disk;
  write_lives(disk, 1, 3);
  CHECK_FALSE(opens(disk, [](Look, const std::string& file) {
    const bool hides = file.ends_with("PV2-DURABLE");
    return hides ? leveldb::Status::IOError(file, "Input/output error") : leveldb::Status::OK();
  }));
}

TEST_CASE("without create_if_missing a store that is out of sight is not one that is not there") {
  Machine machine;
  write_lives(machine.disk, 1, 3);
  machine.sight.set_sight([](Look look, const std::string& file) {
    return look == Look::kList ? SightEnv::hidden(file) : leveldb::Status::OK();
  });
  LevelDbOptions options = machine.options();
  options.create_if_missing = false;
  Writer writer(std::move(options));
  const Status refused = writer.open();
  CHECK(refused.code() == StatusCode::kIoError);
  CHECK_THAT(refused.to_string(), ContainsSubstring("PV2-STORE, which is there"));
}

TEST_CASE("a table that is removed under an open store makes its rows unreadable, not absent") {
  Machine machine;
  write_lives(machine.disk, 4, 20);
  Writer writer(machine.options());
  REQUIRE(writer.open().ok());
  const bool is_taken_over = GENERATE(false, true);
  if (is_taken_over) REQUIRE(writer.write("new").ok());
  int tables = 0;
  for (const std::string& file : machine.disk.files()) {
    if (!file.ends_with(".ldb")) continue;
    REQUIRE(machine.disk.RemoveFile(file).ok());
    ++tables;
  }
  REQUIRE(tables != 0);

  // LevelDB may have opened each of them already, to merge them. Then it goes on to read it.
  for (int life = 0; life < 4; ++life) {
    const auto found =
        writer.store().get(Space::kHost, std::to_string(life) + "-" + std::to_string(7));
    if (found.ok()) {
      CHECK(found->has_value());
      continue;
    }
    CHECK(found.status().code() == StatusCode::kIoError);
    CHECK_THAT(found.status().to_string(), ContainsSubstring(".ldb: it is missing"));
  }
  const Status scanned =
      writer.store().scan(Space::kHost, "", [](const StoredRow&) { return Status(); });
  CHECK((scanned.ok() || scanned.code() == StatusCode::kIoError));
}

TEST_CASE("a part of a table that is not found makes its rows unreadable, not absent") {
  Machine machine;
  write_lives(machine.disk, 4, 20);
  Writer writer(machine.options());
  REQUIRE(writer.open().ok());
  machine.sight.set_sight([](Look look, const std::string& file) {
    return look == Look::kBlock ? SightEnv::hidden(file) : leveldb::Status::OK();
  });
  const Status found = writer.store().get(Space::kHost, "0-7").status();
  CHECK(found.code() == StatusCode::kIoError);
  CHECK_THAT(found.to_string(), ContainsSubstring(".ldb"));
  const auto visit = [](const StoredRow&) { return Status(); };
  CHECK(writer.store().scan(Space::kHost, "", visit).code() == StatusCode::kIoError);
}

TEST_CASE("a lock that cannot be looked at is not one whose store was removed") {
  const TemporaryDirectory directory;
  const std::string file = directory.path("PV2-LOCK");
  const std::string loop = directory.path("loop");
  REQUIRE(::symlink(loop.c_str(), loop.c_str()) == 0);
  StoreLock lock;
  REQUIRE(lock.acquire(file, directory.path("")).ok());
  REQUIRE(lock.check(file, directory.path("")).ok());

  const Status unknown = lock.check(loop + "/PV2-LOCK", directory.path(""));
  CHECK(unknown.code() == StatusCode::kIoError);
  CHECK_THAT(unknown.to_string(), ContainsSubstring("cannot look at " + loop + "/PV2-LOCK"));
  CHECK_THAT(unknown.to_string(), !ContainsSubstring("backup"));

  std::filesystem::remove(file);
  CHECK_THAT(lock.check(file, directory.path("")).to_string(), ContainsSubstring("was removed"));
}

TEST_CASE("a file of the log that was out of sight is not made anew") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("PV2-STEPS-1");
  std::ofstream(path) << "acknowledged";
  const auto made = system_segment_files().create(path);
  CHECK(made.status().code() == StatusCode::kIoError);
  CHECK_THAT(made.status().to_string(), ContainsSubstring("File exists"));
  CHECK(read_file(path) == "acknowledged");
}

TEST_CASE("LevelDB gets the names in a directory, and is told of one that is not there") {
  const TemporaryDirectory directory;
  std::ofstream(directory.path("a")) << "";
  std::vector<std::string> names;
  REQUIRE(system_env().GetChildren(directory.path(""), &names).ok());
  CHECK(names == std::vector<std::string>{"a"});
  CHECK(system_env().GetChildren(directory.path("none"), &names).IsNotFound());
  const leveldb::Status no_directory = system_env().GetChildren(directory.path("a"), &names);
  CHECK_FALSE(no_directory.ok());
  CHECK_FALSE(no_directory.IsNotFound());
  CHECK(names.empty());
}

}  // namespace
}  // namespace pv2::testing::out_of_sight_test
