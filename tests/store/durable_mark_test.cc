// SPDX-License-Identifier: Apache-2.0
//
// PV2-DURABLE: a database that has lost its end is refused, and any other is accepted. On a file
// system that loses what was not synced.

#include "durable_mark.h"

#include <pv2/base/random.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "step_files.h"
#include "store_fixture.h"
#include "support/catch.h"

namespace pv2::testing::durable_mark_test {
namespace {

// A log with the commits 1 to 5, as it is after a clean stop and after the death of the process.
TEST_CASE("every cut of a log that loses a durable commit is refused, with both commits named") {
  const bool clean = GENERATE(true, false);
  CrashEnv env;
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    for (const char* key : {"a", "b", "c", "d", "e"}) REQUIRE(writer.write(key).ok());
    if (clean) writer.store().close();
  }
  const std::string log = step_files(env).back();
  const std::string whole = env.contents(log);
  const auto ends = frame_ends(whole);
  REQUIRE(ends.size() == 5);
  const bool with_zeros = GENERATE(false, true);
  for (std::size_t size = 0; size < ends.back(); ++size) {
    CrashEnv copy;
    copy_files(env, copy);
    std::string cut = whole.substr(0, size);
    if (with_zeros) cut.resize(whole.size());
    const auto left =
        std::count_if(ends.begin(), ends.end(), [&](auto end) { return end <= size; });
    copy.set_contents(log, cut);
    const std::size_t operations = copy.operations();

    Writer writer(copy);
    const Status refused = writer.open();

    INFO("log cut to " << size << " of " << whole.size() << " bytes: " << refused.to_string());
    REQUIRE(refused.code() == StatusCode::kCorruption);
    const std::string message(refused.message());
    if (left != 0) REQUIRE_THAT(message, ContainsSubstring("PV2-STEPS-1: its end is missing"));
    REQUIRE_THAT(message, ContainsSubstring("PV2-DURABLE says that commit 5 was durable"));
    REQUIRE_THAT(message,
                 ContainsSubstring("the last one that is there is " + std::to_string(left)));
    REQUIRE(copy.operations() == operations);
  }
}

TEST_CASE("after a power cut a lost commit is found even if 128 syncs have followed it") {
  CrashEnv env;
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    for (int i = 1; i <= 130; ++i) REQUIRE(writer.write(std::to_string(i)).ok());
    env.crash();
  }
  env.reboot();
  const std::string log = step_files(env).back();
  env.set_contents(log, env.contents(log).substr(0, 100));

  Writer writer(env);
  const Status refused = writer.open();

  REQUIRE(refused.code() == StatusCode::kCorruption);
  REQUIRE_THAT(std::string(refused.message()), ContainsSubstring("commit 129 was durable"));
}

TEST_CASE("marks are never ahead of the database, wherever the power is cut") {
  for (std::size_t cut = 0; cut < 400; ++cut) {
    for (const auto torn : {CrashEnv::TornTail::kNone, CrashEnv::TornTail::kBytes}) {
      CrashEnv env(cut);
      env.crash_before_operation(cut, torn);
      {
        Writer writer(env);
        if (writer.open().ok()) {
          for (int i = 1; i <= 140; ++i) {
            if (!writer.write(std::to_string(i)).ok()) break;
          }
        }
      }
      env.crash(torn);
      env.reboot();
      Writer writer(env);
      const Status opened = writer.open();
      INFO("power off before operation " << cut << ": " << opened.to_string());
      REQUIRE(opened.ok());
      REQUIRE(writer.write("after").ok());
      writer.store().close();
    }
  }
}

// The marks of one life, in a file system of their own.
struct Marks {
  CrashEnv env;
  const LevelDbFiles files{env, env.directory_sync()};
  const std::string path = "store/PV2-DURABLE";

  Marks() {
    REQUIRE(env.CreateDir("store").ok());
    REQUIRE(env.directory_sync()(".").ok());
  }
  std::uint64_t read() { return read_marks(files, path).value().value; }
  std::string contents() { return env.contents(path); }
};

TEST_CASE("the file of marks keeps its size and its first mark, and the highest mark counts") {
  Marks marks;
  REQUIRE(marks.read() == 0);
  DurableMark mark(marks.files, marks.env, marks.path);
  REQUIRE(mark.raise({1}).ok());
  const std::string first = marks.contents();
  REQUIRE(first.size() == DurableMark::kMarks * DurableMark::kMarkBytes);
  for (std::uint64_t i = 2; i <= 3 * DurableMark::kMarks; ++i) {
    REQUIRE(mark.raise({i}).ok());
    REQUIRE(marks.read() == i);
  }
  REQUIRE(marks.contents().size() == first.size());
  REQUIRE(marks.contents().starts_with(first.substr(0, DurableMark::kMarkBytes)));
}

// A disk keeps or loses sectors of 512 bytes, and a mark may be in two of them.
TEST_CASE("after a power cut the highest mark is at most 127 old, whichever sectors are torn") {
  constexpr std::size_t kSector = 512;
  Random random(1);
  Marks marks;
  DurableMark mark(marks.files, marks.env, marks.path);
  std::string synced;
  for (std::uint64_t i = 1; i <= 3 * DurableMark::kMarks; ++i) {
    REQUIRE(mark.raise({i << 20 | i}).ok());
    const std::string written = marks.contents();
    if (i % DurableMark::kSyncEvery == 1) synced = written;  // the first one with the file's name
    for (int time = 0; time < 8; ++time) {
      const std::size_t lost = random.below(256);
      std::string torn = written;
      for (std::size_t at = 0; at < torn.size(); at += kSector) {
        if ((lost >> at / kSector & 1) != 0) torn.replace(at, kSector, synced, at, kSector);
      }
      Marks after;
      after.env.set_contents(after.path, torn);
      const std::uint64_t found = after.read() & 0xFFFFF;
      INFO("raised to " << i << ", sectors lost: " << lost << ", found " << found);
      REQUIRE((found <= i && i < found + DurableMark::kSyncEvery));
    }
  }
}

// A file that grew would change its inode, which can make the syncs of the log slower.
TEST_CASE("a commit changes the size of no file") {
  CrashEnv env;
  Writer writer(env);
  REQUIRE(writer.open().ok());
  const auto sizes = [&] {
    std::map<std::string, std::size_t> found;
    for (const std::string& file : env.files()) found[file] = env.contents(file).size();
    return found;
  };
  REQUIRE(writer.write("first").ok());
  const auto before = sizes();
  for (int i = 1; i <= 500; ++i) REQUIRE(writer.write(std::to_string(i)).ok());
  REQUIRE(sizes() == before);
}

TEST_CASE("a damaged file of marks is refused by name, but a torn end of it is accepted") {
  CrashEnv env;
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    for (const char* key : {"a", "b"}) REQUIRE(writer.write(key).ok());
    writer.store().close();
  }
  const std::string marks = env.contents("store/PV2-DURABLE");
  for (std::size_t size = 0; size < 30; ++size) {
    CrashEnv copy;
    copy_files(env, copy);
    copy.set_contents("store/PV2-DURABLE", marks.substr(0, size));
    Writer writer(copy);
    const Status opened = writer.open();
    INFO("cut to " << size << " bytes: " << opened.to_string());
    REQUIRE(opened.ok() == (size >= 12));
    if (opened.ok()) continue;
    REQUIRE(opened.code() == StatusCode::kCorruption);
    REQUIRE_THAT(std::string(opened.message()), ContainsSubstring("PV2-DURABLE: it is cut short"));
  }
}

TEST_CASE("a store of a version without marks opens, and has marks from its first commit on") {
  CrashEnv env;
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    REQUIRE(writer.write("a").ok());
    writer.store().close();
  }
  REQUIRE(env.RemoveFile("store/PV2-DURABLE").ok());

  Writer writer(env);
  REQUIRE(writer.open().ok());
  REQUIRE(env.contents("store/PV2-DURABLE").empty());
  REQUIRE(writer.write("b").ok());
  REQUIRE(env.contents("store/PV2-DURABLE").size() == 4092);
  writer.store().close();
}

}  // namespace
}  // namespace pv2::testing::durable_mark_test
