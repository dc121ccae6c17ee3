// SPDX-License-Identifier: Apache-2.0
//
// WorkFolder: the temporary folder that a benchmark writes in. It has to be on a disk, because a
// sync in memory costs nothing and would make every durable figure wrong; on tmpfs the program ends
// with 77, which ctest takes for a test that was skipped, and names the option to use.

#pragma once

#include <pv2/base/status.h>

#include <functional>
#include <string>
#include <string_view>

namespace pv2::bench {

/// Removed with everything in it when it is destroyed, or by die(). Owned by one thread; at most
/// one exists at a time.
class WorkFolder {
 public:
  explicit WorkFolder(const std::string& parent);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// A path in the folder where nothing exists yet.
  std::string fresh(std::string_view name);
  /// Removes such a path, and waits until the file system has done so, because the next thing is
  /// measured.
  void remove(const std::string& path) const;

 private:
  std::string path_;
  unsigned next_ = 0;
};

/// Ends a benchmark that cannot go on, as it would have no figures: says why, removes the work
/// folder, ends the process with `exit_code`. May be called on any thread.
[[noreturn]] void die(std::string_view why, int exit_code = 1);

/// Looks every millisecond whether `holds`, and ends the program if that takes more than five
/// minutes: `what` has failed then, or what the benchmark expects of the engine is not so any more.
void wait_until(std::string_view what, const std::function<bool()>& holds);

/// Ends the program unless `status` is OK.
void must(const Status& status, std::string_view what);
/// The value; ends the program when there is none.
template <class T>
T must(Result<T> result, std::string_view what) {
  must(result.status(), what);
  return *std::move(result);
}

}  // namespace pv2::bench
