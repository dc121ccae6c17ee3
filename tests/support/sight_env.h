// SPDX-License-Identifier: Apache-2.0
//
// SightEnv: a file system of which a test can hide files from single calls, as if a mount were gone
// for a moment, a file server did not answer, or memory were short. A hidden file is still there,
// and later calls see it. Writes are not hidden.

#pragma once

#include <leveldb/env.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace pv2::testing {

/// Thread-safe. The wrapped Env outlives it.
class SightEnv final : public leveldb::EnvWrapper {
 public:
  enum class Look {
    kList,    ///< If it is hidden with NotFound, the list is empty; with another failure, it fails.
    kExists,  ///< If it is hidden, the answer is no, as that of access() is to any failure.
    kSize,
    kRead,   ///< Of a whole file.
    kTable,  ///< Opening a table.
    kBlock,  ///< Reading a part of a table, which LevelDB may open for each.
  };
  /// What a look finds; OK: what is there. Called with a lock held.
  using Sight = std::function<leveldb::Status(Look, const std::string& file)>;

  explicit SightEnv(leveldb::Env& env) : EnvWrapper(&env) {}

  void set_sight(Sight sight) {
    const std::lock_guard lock(mutex_);
    sight_ = std::move(sight);
  }
  static leveldb::Status hidden(const std::string& file) {
    return leveldb::Status::NotFound(file, "No such file or directory");
  }

  leveldb::Status GetChildren(const std::string& directory,
                              std::vector<std::string>* result) override {
    const leveldb::Status seen = look(Look::kList, directory);
    result->clear();
    if (seen.IsNotFound()) return leveldb::Status::OK();
    return seen.ok() ? target()->GetChildren(directory, result) : seen;
  }
  bool FileExists(const std::string& file) override {
    return look(Look::kExists, file).ok() && target()->FileExists(file);
  }
  leveldb::Status GetFileSize(const std::string& file, std::uint64_t* size) override {
    const leveldb::Status seen = look(Look::kSize, file);
    return seen.ok() ? target()->GetFileSize(file, size) : seen;
  }
  leveldb::Status NewSequentialFile(const std::string& file,
                                    leveldb::SequentialFile** result) override {
    *result = nullptr;
    const leveldb::Status seen = look(Look::kRead, file);
    return seen.ok() ? target()->NewSequentialFile(file, result) : seen;
  }
  leveldb::Status NewRandomAccessFile(const std::string& file,
                                      leveldb::RandomAccessFile** result) override {
    *result = nullptr;
    leveldb::Status opened = look(Look::kTable, file);
    if (opened.ok()) opened = target()->NewRandomAccessFile(file, result);
    if (opened.ok()) *result = new Table(*this, file, *result);
    return opened;
  }

 private:
  class Table final : public leveldb::RandomAccessFile {
   public:
    Table(SightEnv& env, std::string name, leveldb::RandomAccessFile* file)
        : env_(env), name_(std::move(name)), file_(file) {}
    leveldb::Status Read(std::uint64_t offset, std::size_t n, leveldb::Slice* result,
                         char* scratch) const override {
      const leveldb::Status seen = env_.look(Look::kBlock, name_);
      return seen.ok() ? file_->Read(offset, n, result, scratch) : seen;
    }

   private:
    SightEnv& env_;
    const std::string name_;
    const std::unique_ptr<leveldb::RandomAccessFile> file_;
  };

  leveldb::Status look(Look look, const std::string& file) {
    const std::lock_guard lock(mutex_);
    return sight_ ? sight_(look, file) : leveldb::Status::OK();
  }

  std::mutex mutex_;
  Sight sight_;
};

}  // namespace pv2::testing
