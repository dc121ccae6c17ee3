// SPDX-License-Identifier: Apache-2.0
//
// A file of LevelDB that something else may soon refer to is there after a power cut, with what was
// synced to it, though LevelDB has not synced the directory itself.

#include "durable_names_env.h"

#include <memory>
#include <string>

#include "store_fixture.h"
#include "support/catch.h"

namespace pv2::testing::durable_names_env_test {
namespace {

TEST_CASE("a synced log or table keeps its name through a power cut, and a rename is kept too") {
  const std::string name = GENERATE("store/000005.log", "store/000006.ldb", "store/CURRENT");
  const bool is_renamed = name == "store/CURRENT";
  CrashEnv machine;
  DurableNamesEnv env(machine, machine.directory_sync());
  REQUIRE(env.CreateDir("store").ok());
  REQUIRE(machine.directory_sync()(".").ok());
  const std::string written = is_renamed ? "store/000007.ldb" : name;
  leveldb::WritableFile* made = nullptr;
  REQUIRE(env.NewWritableFile(written, &made).ok());
  const std::unique_ptr<leveldb::WritableFile> file(made);
  REQUIRE(file->Append("rows").ok());
  REQUIRE(file->Sync().ok());
  if (is_renamed) REQUIRE(env.RenameFile(written, name).ok());

  machine.crash();
  machine.reboot();

  REQUIRE(machine.FileExists(name));
  REQUIRE(machine.contents(name) == "rows");
}

TEST_CASE("a file whose name cannot be made durable is not handed out") {
  CrashEnv machine;
  DurableNamesEnv env(
      machine, [](const std::string&) { return Status(StatusCode::kUnavailable, "no sync"); });
  REQUIRE(env.CreateDir("store").ok());
  leveldb::WritableFile* made = nullptr;

  const leveldb::Status refused = env.NewWritableFile("store/000005.log", &made);

  REQUIRE(refused.IsIOError());
  REQUIRE_THAT(refused.ToString(), ContainsSubstring("no sync"));
  REQUIRE(made == nullptr);
}

}  // namespace
}  // namespace pv2::testing::durable_names_env_test
