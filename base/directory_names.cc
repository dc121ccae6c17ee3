// SPDX-License-Identifier: Apache-2.0
//
// errno is set to 0 before each readdir(), which leaves it alone at the end of the list.

#include "pv2/base/directory_names.h"

#include <cerrno>
#include <memory>
#include <string_view>
#include <system_error>

namespace pv2 {
namespace {

Status failed(const std::string& directory, int error) {
  return Status(error == ENOENT ? StatusCode::kNotFound : StatusCode::kIoError,
                "listing " + directory + ": " + std::generic_category().message(error));
}

}  // namespace

Result<std::vector<std::string>> names_in(const std::string& directory,
                                          const DirectoryCalls& calls) {
  const auto close = [](DIR* opened) { ::closedir(opened); };
  const std::unique_ptr<DIR, decltype(close)> opened(calls.opendir(directory.c_str()), close);
  if (opened == nullptr) return failed(directory, errno);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = calls.readdir(opened.get());
    if (entry == nullptr && errno == 0) return names;
    if (entry == nullptr) {
      // What the list has lost is not absent: kNotFound is about the directory alone.
      return Status(StatusCode::kIoError, std::string(failed(directory, errno).message()));
    }
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
}

}  // namespace pv2
