// SPDX-License-Identifier: Apache-2.0
//
// Many files that are written with two syncs for all of them, on a disk that does not take them.

#include "storage/file_tree.h"

#include <leveldb/env.h>

#include "support/catch.h"
#include "support/crash_env.h"

namespace pv2::testing::file_tree_test {
namespace {

using cluster::EverythingSync;
using cluster::FileTree;

}  // namespace

TEST_CASE("files are not written when the system could not write a draft, whoever was told first") {
  CrashEnv env;
  // As with syncfs: the failure was told to somebody else, and is told once more to those who had
  // the file system open before it.
  int failures = 0;
  const FileTree files(env, env.directory_sync(), "0", [&](const std::string&) {
    return Result<EverythingSync>([&failures, known = failures] {
      return failures == known ? Status() : Status(StatusCode::kIoError, "it was not written");
    });
  });
  env.set_fault([&](CrashEnv::Operation operation, const std::string& file) {
    if (operation == CrashEnv::Operation::kAppend && file.starts_with("root/b/")) ++failures;
    return leveldb::Status::OK();
  });
  REQUIRE(files.make_directories("root").ok());
  CHECK(files.write_all({{"root/a/file", "1"}, {"root/c/file", "3"}}).ok());
  const Status failed = files.write_all({{"root/a/file", "2"}, {"root/b/file", "2"}});
  CHECK(failed.code() == StatusCode::kIoError);
  CHECK(env.contents("root/a/file") == "1");
  CHECK_FALSE(files.exists("root/b/file"));
}

}  // namespace pv2::testing::file_tree_test
