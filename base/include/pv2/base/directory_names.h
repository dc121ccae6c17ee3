// SPDX-License-Identifier: Apache-2.0
//
// names_in(): what is in a directory. A list that the system broke off is a failure here: readdir()
// answers the end and an error alike, and who does not look at errno takes the names before the
// error for all that there are.

#pragma once

#include <dirent.h>

#include <string>
#include <vector>

#include "pv2/base/status.h"

namespace pv2 {

/// The system's calls by which a directory is read. Each answers as its manual page says, with the
/// error in errno.
struct DirectoryCalls {
  DIR* (*opendir)(const char*) = ::opendir;
  dirent* (*readdir)(DIR*) = ::readdir;
};

/// The names of all that is in `directory`, without "." and "..", in no order. kNotFound: there is
/// no such directory. Thread-safe.
Result<std::vector<std::string>> names_in(const std::string& directory,
                                          const DirectoryCalls& calls = {});

}  // namespace pv2
