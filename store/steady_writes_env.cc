// SPDX-License-Identifier: Apache-2.0
//
// LevelDB does not tell which descriptor a file has, so the file is opened once more. The Env may
// be one whose files are in memory: then there is nothing to open, and nothing to write out.

#include "steady_writes_env.h"

#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>

namespace pv2 {

class SteadyWritesEnv::File final : public leveldb::WritableFile {
 public:
  File(std::unique_ptr<leveldb::WritableFile> file, std::string name, const WriteOut& write_out)
      : file_(std::move(file)), name_(std::move(name)), write_out_(write_out) {}
  ~File() override {
    if (fd_.value_or(kNone) != kNone) ::close(*fd_);
  }

  leveldb::Status Append(const leveldb::Slice& data) override {
    appended_ += data.size();
    return file_->Append(data);
  }
  // LevelDB flushes a table after each block, and a log after each 32 KiB.
  leveldb::Status Flush() override {
    leveldb::Status status = file_->Flush();
    if (status.ok() && appended_ - written_out_ >= kStep) write_out();
    return status;
  }
  leveldb::Status Sync() override {
    written_out_ = appended_;
    return file_->Sync();
  }
  leveldb::Status Close() override { return file_->Close(); }

 private:
  static constexpr int kNone = -1;

  void write_out() {
    if (!fd_) fd_ = ::open(name_.c_str(), O_RDONLY | O_CLOEXEC);
    if (*fd_ != kNone) write_out_(*fd_, written_out_, appended_ - written_out_);
    written_out_ = appended_;
  }

  const std::unique_ptr<leveldb::WritableFile> file_;
  const std::string name_;
  const WriteOut& write_out_;
  std::uint64_t appended_ = 0;
  std::uint64_t written_out_ = 0;  // up to here it was written out, or is on its way
  std::optional<int> fd_;          // nullopt: not opened yet
};

leveldb::Status SteadyWritesEnv::NewWritableFile(const std::string& file,
                                                 leveldb::WritableFile** result) {
  const leveldb::Status status = target()->NewWritableFile(file, result);
  const bool may_be_large = file.ends_with(".log") || file.ends_with(".ldb");
  if (!status.ok() || !may_be_large) return status;
  *result = new File(std::unique_ptr<leveldb::WritableFile>(*result), file, write_out_);
  return status;
}

void SteadyWritesEnv::write_out_by_system(int fd, std::uint64_t offset,
                                          std::uint64_t bytes) noexcept {
  ::sync_file_range(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                    SYNC_FILE_RANGE_WRITE);
}

}  // namespace pv2
