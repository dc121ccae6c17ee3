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
#include <utility>
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

  /// The file, which is below kRoot, has another content while everything is hidden: somebody has
  /// made one below the mount point.
  void leave_below(const std::string& file, const std::string& bytes) {
    crash_env_.set_contents(path_of(file, true), bytes);
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

/// One disappearance at each of the calls that each verb makes, short ones and one without end. An
/// end that is far may come with `witness`, which the world knows, below the mount point, too.
template <class World>
void vanish_within(const std::vector<Verb<World>>& verbs, const std::string& witness) {
  constexpr std::size_t kForEver = VanishingEnv::kForEver;
  const std::vector<std::pair<std::size_t, bool>> ways{
      {1, false}, {2, false},        {3, false}, {4, false},
      {8, false}, {kForEver, false}, {4, true},  {kForEver, true}};
  for (const Verb<World>& verb : verbs) {
    for (const auto& [count, has_other] : ways) {
      bool was_hidden = true;
      for (std::size_t begin = 0; was_hidden; ++begin) {
        INFO(verb.title << ": hidden for " << count << " calls from call " << begin
                        << (has_other ? ", with another witness" : ""));
        World world;
        if (verb.begin) verb.begin(world);
        if (has_other) {
          REQUIRE(*world.files.is_there(witness));
          world.env.leave_below(witness, "another one");
        }
        world.env.hide(begin, count);
        const Check check = verb.call(world);
        was_hidden = world.env.show();
        CHECK(check());
      }
    }
  }
}

}  // namespace pv2::testing
