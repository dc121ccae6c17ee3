// SPDX-License-Identifier: Apache-2.0
//
// Wraps the Env that LevelDB has for the system: only GetChildren() differs, whose names come from
// names_in().

#include "system_env.h"

#include <string>
#include <utility>
#include <vector>

#include "pv2/base/directory_names.h"

namespace pv2 {
namespace {

class SystemEnv final : public leveldb::EnvWrapper {
 public:
  SystemEnv() : EnvWrapper(leveldb::Env::Default()) {}
  leveldb::Status GetChildren(const std::string& directory,
                              std::vector<std::string>* result) override {
    result->clear();
    auto names = names_in(directory);
    if (names.ok()) {
      *result = *std::move(names);
      return leveldb::Status::OK();
    }
    const std::string why(names.status().message());
    return names.status().code() == StatusCode::kNotFound ? leveldb::Status::NotFound(why)
                                                          : leveldb::Status::IOError(why);
  }
};

}  // namespace

leveldb::Env& system_env() {
  static SystemEnv& env = *new SystemEnv;  // threads of a store may use it while the process ends
  return env;
}

}  // namespace pv2
