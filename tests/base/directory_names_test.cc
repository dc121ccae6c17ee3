// SPDX-License-Identifier: Apache-2.0
//
// Lists of names: a list that is broken off is a failure, wherever that happens.

#include <pv2/base/directory_names.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/temporary_directory.h"

namespace pv2::testing::directory_names_test {
namespace {

int names_left = 0;

// Fails after some names, as NFS and FUSE do, and a disk that cannot be read.
dirent* read_some(DIR* directory) {
  if (names_left-- > 0) return ::readdir(directory);
  errno = EIO;
  return nullptr;
}

TEST_CASE("a directory is listed whole, or there is no list") {
  const TemporaryDirectory directory;
  const std::vector<std::string> names = {"a", "b", "c"};
  for (const std::string& name : names) std::ofstream(directory.path(name)) << name;

  auto all = names_in(directory.path(""));
  REQUIRE(all.ok());
  std::ranges::sort(*all);
  CHECK(*all == names);

  const int entries = 5;  // with "." and ".."
  for (int left = 0; left <= entries; ++left) {
    names_left = left;
    const auto some = names_in(directory.path(""), {.readdir = read_some});
    INFO("after " << left << " entries: " << some.status().to_string());
    REQUIRE(some.status().code() == StatusCode::kIoError);
    CHECK_THAT(some.status().to_string(), ContainsSubstring("listing " + directory.path("")));
  }
}

TEST_CASE("a directory that is not there is told from a path that cannot be listed") {
  const TemporaryDirectory directory;
  std::ofstream(directory.path("file")) << "";
  CHECK(names_in(directory.path("none")).status().code() == StatusCode::kNotFound);
  CHECK(names_in(directory.path("file")).status().code() == StatusCode::kIoError);
}

}  // namespace
}  // namespace pv2::testing::directory_names_test
