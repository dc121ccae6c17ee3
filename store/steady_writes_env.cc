// SPDX-License-Identifier: Apache-2.0
//
// LevelDB does not tell which descriptor a file has, so the file is opened once more. The Env may
// be one whose files are in memory: then there is nothing to open, and nothing to write out.

#include "steady_writes_env.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <system_error>

#include "leveldb_files.h"

namespace pv2 {
namespace {

constexpr int kNone = -1;

}  // namespace

class SteadyWritesEnv::File final : public leveldb::WritableFile {
 public:
  File(std::unique_ptr<leveldb::WritableFile> file, std::string name, const WriteOut& write_out)
      : file_(std::move(file)), name_(std::move(name)), write_out_(write_out) {}
  ~File() override { stop(); }

  leveldb::Status Append(const leveldb::Slice& data) override {
    appended_ += data.size();
    return file_->Append(data);
  }
  // LevelDB flushes a table after each block, and a log after 32 KiB at the latest.
  leveldb::Status Flush() override {
    leveldb::Status status = file_->Flush();
    if (status.ok() && appended_ - written_out_ >= kStep) write_out();
    return status.ok() ? failure_ : status;
  }
  leveldb::Status Sync() override {
    leveldb::Status status = file_->Sync();
    written_out_ = appended_ / kPage * kPage;
    return status.ok() ? failure_ : status;
  }
  leveldb::Status Close() override { return file_->Close(); }

 private:
  void write_out() {
    if (!fd_) fd_ = ::open(name_.c_str(), O_RDONLY | O_CLOEXEC);
    const std::uint64_t end = appended_ / kPage * kPage;
    if (*fd_ != kNone) {
      const int error = write_out_(*fd_, written_out_, end - written_out_);
      if (error == ENOSYS) {
        stop();
      } else if (error != 0) {
        failure_ = leveldb::Status::IOError(name_, std::generic_category().message(error));
      }
    }
    written_out_ = end;
  }
  void stop() noexcept {
    if (fd_.value_or(kNone) != kNone) ::close(*fd_);
    fd_ = kNone;
  }

  const std::unique_ptr<leveldb::WritableFile> file_;
  const std::string name_;
  const WriteOut& write_out_;
  std::uint64_t appended_ = 0;
  std::uint64_t written_out_ = 0;  // up to here it was written out, or is on its way
  std::optional<int> fd_;          // nullopt: not opened yet
  leveldb::Status failure_;
};

leveldb::Status SteadyWritesEnv::NewWritableFile(const std::string& file,
                                                 leveldb::WritableFile** result) {
  const leveldb::Status status = target()->NewWritableFile(file, result);
  if (!status.ok() || !is_log_or_table(file)) return status;
  *result = new File(std::unique_ptr<leveldb::WritableFile>(*result), file, write_out_);
  return status;
}

// EINVAL, ESPIPE and EOPNOTSUPP are taken for: the file cannot be written out in part. EPERM and
// EACCES come from a filter of system calls. After ENOMEM the bytes stay, and the sync writes them.
int SteadyWritesEnv::write_out_by_system(int fd, std::uint64_t offset,
                                         std::uint64_t bytes) noexcept {
  int done = -1;
  do {
    done = ::sync_file_range(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                             SYNC_FILE_RANGE_WRITE);
  } while (done != 0 && errno == EINTR);
  if (done == 0) return 0;
  switch (errno) {
    case ENOMEM:
      return 0;
    case EINVAL:
    case ESPIPE:
    case EOPNOTSUPP:
    case EPERM:
    case EACCES:
      return ENOSYS;
    default:
      return errno;
  }
}

}  // namespace pv2
