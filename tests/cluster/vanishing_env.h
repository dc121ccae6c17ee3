// SPDX-License-Identifier: Apache-2.0
//
// A machine from which the directory of the cluster vanishes for a moment: it is unmounted there,
// and mounted again. Meanwhile the mount point is an empty directory, in which files can be made.

#pragma once

#include <leveldb/env.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "storage/file_tree.h"
#include "support/catch.h"
#include "support/crash_env.h"

namespace pv2::testing {

/// Hides everything below kRoot during some of the calls that it gets.
class VanishingEnv final : public leveldb::EnvWrapper {
 public:
  static constexpr std::size_t kForEver = std::numeric_limits<std::size_t>::max();
  static constexpr std::string_view kRoot = "root";
  static constexpr const char* kBelow = "below";  ///< What lies below the mount point.

  explicit VanishingEnv(CrashEnv& env) : EnvWrapper(env.as_env()), crash_env_(env) {
    REQUIRE(target()->CreateDir(kBelow).ok());
  }

  /// From the call `begin` on, counted from now, for `count` calls.
  void hide(std::size_t begin, std::size_t count) {
    calls_ = 0;
    begin_ = begin;
    count_ = count;
  }
  /// Whether a call came while everything was hidden.
  bool show() {
    const bool was_hidden = calls_ > begin_;
    hide(kForEver, 0);
    return was_hidden;
  }
  /// Since hide() or show().
  [[nodiscard]] std::size_t calls() const { return calls_; }

  cluster::FileTree::DirectorySync sync() {
    return [this, sync = crash_env_.directory_sync()](const std::string& directory) {
      return sync(seen(directory));
    };
  }
  cluster::FileTree::OpenSync open_sync() {
    return [this, open = crash_env_.everything_sync()](const std::string& directory) {
      using Opened = Result<cluster::EverythingSync>;
      const std::string path = seen(directory);
      return target()->FileExists(path) ? open(path) : Opened(Status(StatusCode::kNotFound, path));
    };
  }

  bool FileExists(const std::string& file) override { return target()->FileExists(seen(file)); }
  leveldb::Status GetFileSize(const std::string& file, std::uint64_t* size) override {
    return target()->GetFileSize(seen(file), size);
  }
  leveldb::Status GetChildren(const std::string& file, std::vector<std::string>* names) override {
    names->clear();
    return target()->GetChildren(seen(file), names);
  }
  leveldb::Status NewSequentialFile(const std::string& file,
                                    leveldb::SequentialFile** result) override {
    return target()->NewSequentialFile(seen(file), result);
  }
  leveldb::Status NewRandomAccessFile(const std::string& file,
                                      leveldb::RandomAccessFile** result) override {
    return target()->NewRandomAccessFile(seen(file), result);
  }
  leveldb::Status NewWritableFile(const std::string& file,
                                  leveldb::WritableFile** result) override {
    return target()->NewWritableFile(seen(file), result);
  }
  leveldb::Status CreateDir(const std::string& file) override {
    return target()->CreateDir(seen(file));
  }
  leveldb::Status RemoveDir(const std::string& file) override {
    return target()->RemoveDir(seen(file));
  }
  leveldb::Status RemoveFile(const std::string& file) override {
    return target()->RemoveFile(seen(file));
  }
  leveldb::Status RenameFile(const std::string& from, const std::string& to) override {
    const bool hidden = is_hidden();
    return target()->RenameFile(path_of(from, hidden), path_of(to, hidden));
  }

 private:
  bool is_hidden() {
    const std::size_t call = calls_++;
    return call >= begin_ && call - begin_ < count_;
  }
  static std::string path_of(const std::string& path, bool hidden) {
    return hidden && path.starts_with(kRoot) ? kBelow + path.substr(kRoot.size()) : path;
  }
  /// What this call gets instead of `path`.
  std::string seen(const std::string& path) { return path_of(path, is_hidden()); }

  CrashEnv& crash_env_;
  std::size_t calls_ = 0;
  std::size_t begin_ = kForEver;
  std::size_t count_ = 0;
};

/// What a verb has answered, and what it has left behind, when everything can be seen again.
using Check = std::function<bool()>;

/// Something that is done in a world while its `env` hides everything.
template <class World>
struct Verb {
  const char* title;
  std::function<void(World&)> begin;  ///< Before.
  /// Returns what must hold.
  std::function<Check(World&)> call;
};

/// One disappearance at each of the calls that each verb makes, short ones and one without end.
template <class World>
void vanish_within(const std::vector<Verb<World>>& verbs) {
  for (const Verb<World>& verb : verbs) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4},
                                    std::size_t{8}, VanishingEnv::kForEver}) {
      bool was_hidden = true;
      for (std::size_t begin = 0; was_hidden; ++begin) {
        INFO(verb.title << ": hidden for " << count << " calls from call " << begin);
        World world;
        if (verb.begin) verb.begin(world);
        world.env.hide(begin, count);
        const Check check = verb.call(world);
        was_hidden = world.env.show();
        CHECK(check());
      }
    }
  }
}

}  // namespace pv2::testing
