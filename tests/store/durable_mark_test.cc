// SPDX-License-Identifier: Apache-2.0
//
// PV2-DURABLE: a database that has lost its end is refused, and any other is accepted. On a file
// system that loses what was not synced.

#include "durable_mark.h"

#include <algorithm>
#include <deque>
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

TEST_CASE(
    "a long file of marks is replaced by a new one, and a restart continues after the last mark") {
  CrashEnv env;
  const LevelDbFiles files(env, env.directory_sync());
  REQUIRE(env.CreateDir("store").ok());
  REQUIRE(env.directory_sync()(".").ok());
  constexpr std::size_t kPerFile = DurableMark::kFileBytes / DurableMark::kMarkBytes;
  {
    DurableMark mark(files, "store/PV2-DURABLE");
    REQUIRE(mark.read().value() == CommitSequence{});
    for (std::uint64_t i = 1; i <= kPerFile + 2; ++i) REQUIRE(mark.raise({i}).ok());
  }
  REQUIRE(env.contents("store/PV2-DURABLE").size() == 2 * DurableMark::kMarkBytes);
  REQUIRE(DurableMark(files, "store/PV2-DURABLE").read().value().value == kPerFile + 2);

  env.crash();  // the second mark of the new file was not synced
  env.reboot();
  REQUIRE(DurableMark(files, "store/PV2-DURABLE").read().value().value == kPerFile + 1);
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
  REQUIRE(marks.size() == 24);
  for (std::size_t size = 0; size < marks.size(); ++size) {
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
  REQUIRE(env.contents("store/PV2-DURABLE").size() == 12);
  writer.store().close();
}

}  // namespace
}  // namespace pv2::testing::durable_mark_test
