// SPDX-License-Identifier: Apache-2.0
//
// The path of the one folder is also kept where die(), which any thread may call, finds it.

#include "harness/work_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

namespace pv2::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kCannotMeasureHere = 77;

// Written only while no other threads exist, except by die(), which never returns.
std::string& folder_to_remove() {
  static std::string path;
  return path;
}

}  // namespace

WorkFolder::WorkFolder(const std::string& parent) {
  struct statfs system {};
  if (statfs(parent.c_str(), &system) != 0) {
    die(fmt::format("there is no folder {}; use --data=DIR", parent));
  }
  if (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC) {
    die(fmt::format(
            "{} is in memory, where a sync costs nothing; use --data=DIR with a folder on a "
            "disk",
            parent),
        kCannotMeasureHere);
  }
  std::string pattern = parent + "/pv2-bench-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) die(fmt::format("cannot make a folder in {}", parent));
  path_ = pattern;
  folder_to_remove() = path_;
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  folder_to_remove().clear();
}

std::string WorkFolder::fresh(std::string_view name) {
  return fmt::format("{}/{}-{}", path_, name, next_++);
}

void WorkFolder::remove(const std::string& path) const {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) die(fmt::format("cannot remove {}: {}", path, error.message()));
  const int folder = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    syncfs(folder);
    close(folder);
  }
}

void die(std::string_view why, int exit_code) {
  static std::mutex only_one;
  const std::lock_guard lock(only_one);
  fmt::print(stderr, "benchmark: {}\n", why);
  std::error_code ignored;
  if (!folder_to_remove().empty()) fs::remove_all(folder_to_remove(), ignored);
  std::_Exit(exit_code);
}

void wait_until(std::string_view what, const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) {
      die(fmt::format("waited five minutes for this: {}", what));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void must(const Status& status, std::string_view what) {
  if (!status.ok()) die(fmt::format("{}: {}", what, status.to_string()));
}

}  // namespace pv2::bench
