// SPDX-License-Identifier: Apache-2.0
//
// A store that is opened is not changed before its first commit, which says that it is good.

#include <deque>
#include <string>

#include "store_fixture.h"
#include "support/catch.h"

namespace pv2::testing::untouched_until_taken_over_test {
namespace {

// The first commit replays the logs into tables, and replaces MANIFEST and CURRENT.
TEST_CASE("a power cut anywhere in the first commit of a restart loses nothing") {
  CrashEnv env;
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    for (const char* key : {"a", "b", "c"}) REQUIRE(writer.write(key).ok());
    writer.store().close();
  }
  bool finished = false;
  for (std::size_t cut = 0; !finished; ++cut) {
    for (const auto torn :
         {CrashEnv::TornTail::kNone, CrashEnv::TornTail::kRandom, CrashEnv::TornTail::kBytes}) {
      CrashEnv copy(cut);
      copy_files(env, copy);
      REQUIRE(copy.directory_sync()(".").ok());
      {
        Writer writer(copy);
        REQUIRE(writer.open().ok());
        REQUIRE(load_rows(writer.store()).size() == 3);
        copy.crash_before_operation(cut, torn);
        finished = writer.write("d").ok();
      }
      copy.crash(torn);
      copy.reboot();
      Writer writer(copy);
      const Status opened = writer.open();
      INFO("power off before operation " << cut << ": " << opened.to_string());
      REQUIRE(opened.ok());
      REQUIRE(load_rows(writer.store()).size() >= (finished ? 4 : 3));
      REQUIRE(writer.write("e").ok());
      writer.store().close();
    }
  }
}

TEST_CASE("a store is opened, read and closed without one operation on its file system") {
  CrashEnv env;
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    for (const char* key : {"a", "b", "c"}) REQUIRE(writer.write(key).ok());
    writer.store().close();
  }
  const std::size_t operations = env.operations();
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    REQUIRE(load_rows(writer.store()).size() == 3);
    REQUIRE(writer.store().get(Space::kHost, "b").value().has_value());
    writer.store().close();
  }
  {
    Writer crashes(env);
    REQUIRE(crashes.open().ok());
  }
  REQUIRE(env.operations() == operations);
}

}  // namespace
}  // namespace pv2::testing::untouched_until_taken_over_test
