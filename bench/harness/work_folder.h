// SPDX-License-Identifier: Apache-2.0
//
// WorkFolder: the temporary folder that a benchmark writes in. It has to be on a disk, because a
// sync of memory costs nothing and would make every durable figure a lie; on tmpfs the program ends
// and says which option to use.

#pragma once

#include <pv2/base/status.h>

#include <string>
#include <string_view>

namespace pv2::bench {

/// Removed with everything in it at the end of its life, or by die(). Owned by one thread; at most
/// one at a time.
class WorkFolder {
 public:
  explicit WorkFolder(const std::string& parent);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// A path in it where nothing is yet.
  std::string fresh(std::string_view name);
  /// Removes one such path, and waits until the file system has done so: what comes next is
  /// measured.
  void remove(const std::string& path) const;

 private:
  std::string path_;
  unsigned next_ = 0;
};

/// A benchmark that cannot go on has no figures: says why, removes the work folder, ends the
/// process with 1. Any thread.
[[noreturn]] void die(std::string_view why);

/// Ends the program unless `status` is OK.
void must(const Status& status, std::string_view what);
/// The value, or the end of the program.
template <class T>
T must(Result<T> result, std::string_view what) {
  must(result.status(), what);
  return *std::move(result);
}

}  // namespace pv2::bench
