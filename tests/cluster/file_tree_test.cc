// SPDX-License-Identifier: Apache-2.0
//
// Many files that are written with two syncs for all of them, on a disk that does not take them;
// and many directories that are synced at once.

#include "storage/file_tree.h"

#include <leveldb/env.h>

#include "support/catch.h"
#include "support/crash_env.h"
#include "support/temporary_directory.h"

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

TEST_CASE("a directory that goes while many are synced does not keep the others from it") {
  CrashEnv env;
  std::vector<std::string> synced;
  const FileTree files(env, env.directory_sync(), "0", [&](const std::string& directory) {
    using Opened = Result<EverythingSync>;
    if (directory == "root/a") return Opened(Status(StatusCode::kNotFound, "it has just gone"));
    return Opened([&synced, directory] { return synced.push_back(directory), Status(); });
  });
  for (const char* name : {"root/a", "root/b"}) REQUIRE(files.make_directories(name).ok());
  CHECK(files.sync_directories({"root/none", "root/a", "root/b"}).ok());
  CHECK(synced == std::vector<std::string>{"root/b"});
  const TemporaryDirectory real;
  CHECK(cluster::sync_real_directory(real.path("none")).code() == StatusCode::kNotFound);
  const auto opened = cluster::sync_of_real_file_system(real.path("none"));
  CHECK(opened.status().code() == StatusCode::kNotFound);
}

}  // namespace pv2::testing::file_tree_test
