// SPDX-License-Identifier: Apache-2.0
//
// A file of the operating system under kernels, file systems and disks that refuse, fail or do a
// part of what they are asked for. The calls are answered by a model that knows which bytes a power
// cut would take; the bytes themselves go into a real file.

#include "log/system_file.h"

#include <linux/magic.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/catch.h"
#include "support/temporary_directory.h"

namespace pv2::testing::system_file_test {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kBlock = SegmentFile::kBlockBytes;
constexpr long kXfs = 0x58465342;
constexpr long kOverlay = 0x794c7630;
constexpr long kFuse = 0x65735546;

using Asked = std::vector<std::string>;

// Answers the calls of one file.
class System {
 public:
  System() { system_ = this; }
  ~System() { system_ = nullptr; }
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  [[nodiscard]] static FileCalls calls() {
    return {.fstatfs = &fstatfs,
            .fcntl = &fcntl,
            .pwrite = &pwrite,
            .pwritev2 = &pwritev2,
            .fdatasync = &fdatasync};
  }
  /// The next call of that name fails with `error`.
  void fail(const std::string& call, int error) { answers_[call].push_back(-error); }
  /// The next call of that name writes `bytes` and no more.
  void cut_short(const std::string& call, int bytes) { answers_[call].push_back(bytes); }
  /// What was asked since the last call of this.
  [[nodiscard]] Asked asked() { return std::exchange(asked_, {}); }
  /// Whether a power cut would take something that was written.
  [[nodiscard]] bool has_unsynced() const { return unsynced_; }

  long file_system = EXT4_SUPER_MAGIC;

 private:
  static int fstatfs(int fd, struct statfs* facts) {
    system_->asked_.emplace_back("fstatfs");
    if (system_->answer("fstatfs") < 0) return -1;
    if (::fstatfs(fd, facts) != 0) return -1;
    facts->f_type = system_->file_system;
    return 0;
  }
  static int fcntl(int fd, int command, ...) {
    const int flags = ::fcntl(fd, F_GETFL) & ~O_DIRECT;  // the real file is never direct
    if (command == F_GETFL) {
      if (system_->answer("F_GETFL") < 0) return -1;
      return system_->direct_ ? flags | O_DIRECT : flags;
    }
    va_list arguments;
    va_start(arguments, command);
    const int wanted = va_arg(arguments, int);
    va_end(arguments);
    REQUIRE(command == F_SETFL);
    REQUIRE((wanted & ~O_DIRECT) == flags);
    const bool direct = (wanted & O_DIRECT) != 0;
    system_->asked_.emplace_back(direct ? "direct" : "cached");
    if (system_->answer("F_SETFL") < 0) return -1;
    system_->direct_ = direct;
    return 0;
  }
  static ssize_t pwrite(int fd, const void* bytes, std::size_t size, off_t at) {
    system_->asked_.push_back("pwrite " + std::to_string(size) + " at " + std::to_string(at));
    REQUIRE_FALSE(system_->direct_);
    return system_->write("pwrite", fd, bytes, size, at, false);
  }
  static ssize_t pwritev2(int fd, const iovec* pieces, int count, off_t at, int flags) {
    REQUIRE(count == 1);
    REQUIRE(flags == RWF_DSYNC);
    REQUIRE(system_->direct_);
    const std::size_t size = pieces->iov_len;
    system_->asked_.push_back("direct " + std::to_string(size) + " at " + std::to_string(at));
    // Not where the file grows: ext4 of Linux 5.5 to 6.6.
    const bool grows = at + static_cast<off_t>(size) > ::lseek(fd, 0, SEEK_END);
    return system_->write("pwritev2", fd, pieces->iov_base, size, at, !grows);
  }
  static int fdatasync(int /*fd*/) {
    system_->asked_.emplace_back("fdatasync");
    if (system_->answer("fdatasync") < 0) return -1;
    system_->unsynced_ = false;
    return 0;
  }

  ssize_t write(const std::string& call, int fd, const void* bytes, std::size_t size, off_t at,
                bool synced) {
    const int most = answer(call);
    if (most < 0) return -1;
    if (!synced) unsynced_ = true;
    return ::pwrite(fd, bytes, std::min(size, static_cast<std::size_t>(most)), at);
  }
  // How many bytes may be written, or -1 with errno.
  int answer(const std::string& call) {
    std::deque<int>& answers = answers_[call];
    if (answers.empty()) return INT_MAX;
    const int next = answers.front();
    answers.pop_front();
    if (next >= 0) return next;
    errno = -next;
    return -1;
  }

  static inline System* system_ = nullptr;
  std::map<std::string, std::deque<int>> answers_;
  Asked asked_;
  bool direct_ = false;
  bool unsynced_ = false;
};

// Two blocks at an address at which blocks may be.
struct Blocks {
  alignas(kBlock) std::array<char, 2 * kBlock> bytes{};
  explicit Blocks(char with) { bytes.fill(with); }
  [[nodiscard]] std::string_view one() const { return {bytes.data(), kBlock}; }
  [[nodiscard]] std::string_view both() const { return {bytes.data(), 2 * kBlock}; }
};

// A file of two blocks of dots.
class Ground {
 public:
  explicit Ground(const FileCalls& calls = System::calls()) {
    std::ofstream(path, std::ios::binary) << std::string(2 * kBlock, '.');
    auto opened = open_system_file(path, 0, calls);
    REQUIRE(opened.ok());
    file = *std::move(opened);
  }
  [[nodiscard]] std::string bytes() const { return read_file(path); }

  TemporaryDirectory directory;
  std::string path = directory.path("file");
  std::unique_ptr<SegmentFile> file;
  std::unique_ptr<Blocks> a = std::make_unique<Blocks>('a');
  std::unique_ptr<Blocks> b = std::make_unique<Blocks>('b');
};

const std::string kDots(kBlock, '.');
const std::string kAs(kBlock, 'a');
const std::string kBs(kBlock, 'b');

TEST_CASE("blocks go past the page cache in one call, which is its own sync") {
  System system;
  system.file_system =
      GENERATE(long{EXT4_SUPER_MAGIC}, kXfs, long{BTRFS_SUPER_MAGIC}, long{TMPFS_MAGIC});
  Ground ground;

  REQUIRE(ground.file->write_durably(0, ground.a->both()).ok());
  REQUIRE(system.asked() == Asked{"fstatfs", "direct", "direct 8192 at 0"});
  REQUIRE(ground.file->write_durably(kBlock, ground.b->one()).ok());
  REQUIRE(system.asked() == Asked{"direct 4096 at 4096"});

  REQUIRE_FALSE(system.has_unsynced());
  REQUIRE(ground.bytes() == kAs + kBs);
}

TEST_CASE("blocks that make the file grow go through the page cache, and later ones past it") {
  System system;
  Ground ground;

  REQUIRE(ground.file->write_durably(kBlock, ground.a->both()).ok());
  REQUIRE(system.asked() == Asked{"pwrite 8192 at 4096", "fdatasync"});
  REQUIRE_FALSE(system.has_unsynced());
  REQUIRE(ground.file->write_durably(2 * kBlock, ground.b->one()).ok());
  REQUIRE(system.asked() == Asked{"fstatfs", "direct", "direct 4096 at 8192"});
  REQUIRE(ground.file->write_durably(3 * kBlock, ground.b->one()).ok());
  REQUIRE(system.asked() == Asked{"cached", "pwrite 4096 at 12288", "fdatasync"});

  REQUIRE_FALSE(system.has_unsynced());
  REQUIRE(ground.bytes() == kDots + kAs + kBs + kBs);
}

TEST_CASE("a file that was cut grows again") {
  System system;
  Ground ground;
  REQUIRE(ground.file->cut(kBlock).ok());

  REQUIRE(ground.file->write_durably(kBlock, ground.a->one()).ok());

  REQUIRE(system.asked() == Asked{"pwrite 4096 at 4096", "fdatasync"});
  REQUIRE_FALSE(system.has_unsynced());
  REQUIRE(ground.bytes() == kDots + kAs);
}

TEST_CASE("a file system that is not known to sync direct writes gets none") {
  System system;
  Ground ground;
  SECTION("FUSE") { system.file_system = kFuse; }
  SECTION("NFS") { system.file_system = NFS_SUPER_MAGIC; }
  SECTION("overlayfs") { system.file_system = kOverlay; }
  SECTION("one that does not say what it is") { system.fail("fstatfs", ENOSYS); }

  REQUIRE(ground.file->write_durably(0, ground.a->one()).ok());
  REQUIRE(system.asked() == Asked{"fstatfs", "pwrite 4096 at 0", "fdatasync"});
  REQUIRE(ground.file->write_durably(kBlock, ground.b->one()).ok());
  REQUIRE(system.asked() == Asked{"pwrite 4096 at 4096", "fdatasync"});

  REQUIRE_FALSE(system.has_unsynced());
  REQUIRE(ground.bytes() == kAs + kBs);
}

TEST_CASE("a file whose flags cannot be read or changed gets no direct writes") {
  System system;
  Ground ground;
  Asked changes;
  SECTION("read") { system.fail("F_GETFL", EPERM); }
  SECTION("changed") {
    system.fail("F_SETFL", EINVAL);
    changes = {"direct"};
  }

  REQUIRE(ground.file->write_durably(0, ground.a->one()).ok());
  REQUIRE(ground.file->write_durably(kBlock, ground.b->one()).ok());

  Asked expected{"fstatfs"};
  expected.insert(expected.end(), changes.begin(), changes.end());
  for (const char* const at : {"0", "4096"}) {
    expected.push_back(std::string("pwrite 4096 at ") + at);
    expected.emplace_back("fdatasync");
  }
  REQUIRE(system.asked() == expected);
  REQUIRE_FALSE(system.has_unsynced());
  REQUIRE(ground.bytes() == kAs + kBs);
}

TEST_CASE("where direct writes are refused a commit is a write and a sync, and so are later ones") {
  System system;
  Ground ground;
  const int error = GENERATE(EINVAL, EOPNOTSUPP, ENOSYS, EPERM);
  const bool after_a_part = GENERATE(false, true);
  const bool after_others = GENERATE(false, true);
  if (after_others) REQUIRE(ground.file->write_durably(0, ground.b->both()).ok());
  if (after_a_part) system.cut_short("pwritev2", kBlock);
  system.fail("pwritev2", error);
  static_cast<void>(system.asked());

  REQUIRE(ground.file->write_durably(0, ground.a->both()).ok());
  const Asked first = system.asked();
  REQUIRE(first.size() >= 3);
  REQUIRE(Asked(first.end() - 3, first.end()) == Asked{"cached", "pwrite 8192 at 0", "fdatasync"});
  REQUIRE(ground.file->write_durably(kBlock, ground.b->one()).ok());
  REQUIRE(system.asked() == Asked{"pwrite 4096 at 4096", "fdatasync"});

  REQUIRE_FALSE(system.has_unsynced());
  REQUIRE(ground.bytes() == kAs + kBs);
}

TEST_CASE("a write that a signal interrupts, or cuts short, is continued") {
  System system;
  Ground ground;
  SECTION("past the page cache") {
    system.fail("pwritev2", EINTR);
    system.cut_short("pwritev2", kBlock);
    REQUIRE(ground.file->write_durably(0, ground.a->both()).ok());
    REQUIRE(system.asked() == Asked{"fstatfs", "direct", "direct 8192 at 0", "direct 8192 at 0",
                                    "direct 4096 at 4096"});
  }
  SECTION("through it") {
    system.file_system = kFuse;
    system.fail("pwrite", EINTR);
    system.cut_short("pwrite", 100);
    system.fail("fdatasync", EINTR);
    REQUIRE(ground.file->write_durably(0, ground.a->both()).ok());
    REQUIRE(system.asked() == Asked{"fstatfs", "pwrite 8192 at 0", "pwrite 8192 at 0",
                                    "pwrite 8092 at 100", "fdatasync", "fdatasync"});
  }
  REQUIRE_FALSE(system.has_unsynced());
  REQUIRE(ground.bytes() == kAs + kAs);
}

TEST_CASE("a write that the disk failed is not tried another way") {
  System system;
  Ground ground;
  const bool direct = GENERATE(true, false);
  if (!direct) system.file_system = kFuse;
  const auto [error, code, reason] = GENERATE(table<int, StatusCode, std::string>({
      {EIO, StatusCode::kIoError, "Input/output error"},
      {EFBIG, StatusCode::kIoError, "File too large"},
      {ENOSPC, StatusCode::kStorageFull, "No space left on device"},
      {EDQUOT, StatusCode::kStorageFull, "Disk quota exceeded"},
  }));
  system.fail(direct ? "pwritev2" : "pwrite", error);

  const Status written = ground.file->write_durably(0, ground.a->both());

  REQUIRE(written.code() == code);
  REQUIRE(written.message() == "writing " + ground.path + ": " + reason);
  const std::string last = direct ? "direct 8192 at 0" : "pwrite 8192 at 0";
  REQUIRE(system.asked().back() == last);
}

TEST_CASE("a write of nothing is a failure and no endless loop") {
  System system;
  Ground ground;
  system.cut_short("pwritev2", 0);

  const Status written = ground.file->write_durably(0, ground.a->one());

  REQUIRE(written.message() == "writing " + ground.path + ": Input/output error");
}

TEST_CASE("a sync that fails fails the commit") {
  System system;
  system.file_system = kFuse;
  Ground ground;
  system.fail("fdatasync", EIO);

  const Status written = ground.file->write_durably(0, ground.a->one());

  REQUIRE(written.code() == StatusCode::kIoError);
  REQUIRE(written.message() == "syncing " + ground.path + ": Input/output error");
}

TEST_CASE("bytes that are no blocks go through the page cache, and blocks after them past it") {
  System system;
  Ground ground;

  REQUIRE(ground.file->write_durably(0, ground.a->both()).ok());
  static_cast<void>(system.asked());
  REQUIRE(ground.file->write(5, "xyz").ok());
  REQUIRE(system.asked() == Asked{"cached", "pwrite 3 at 5"});
  REQUIRE(system.has_unsynced());
  REQUIRE(ground.file->sync().ok());
  REQUIRE_FALSE(system.has_unsynced());
  static_cast<void>(system.asked());
  REQUIRE(ground.file->write_durably(kBlock, ground.b->one()).ok());
  REQUIRE(system.asked() == Asked{"fstatfs", "direct", "direct 4096 at 4096"});

  REQUIRE(ground.bytes() == "aaaaaxyz" + std::string(kBlock - 8, 'a') + kBs);
}

TEST_CASE("nothing is durable in a file that was removed") {
  System system;
  if (GENERATE(true, false)) system.file_system = kFuse;
  Ground ground;
  fs::remove(ground.path);

  const Status written = ground.file->write_durably(0, ground.a->one());

  REQUIRE(written.code() == StatusCode::kIoError);
  REQUIRE(written.message() == ground.path + " was removed in use");
}

TEST_CASE("the calls of this system write what they are given") {
  Ground ground{FileCalls()};

  REQUIRE(ground.file->write_durably(0, ground.a->both()).ok());
  REQUIRE(ground.file->write_durably(kBlock, ground.b->one()).ok());
  REQUIRE(ground.file->write(5, "xyz").ok());
  REQUIRE(ground.file->write_durably(kBlock, ground.a->one()).ok());
  REQUIRE(ground.file->write_durably(kBlock, ground.b->both()).ok());
  REQUIRE(ground.file->sync().ok());

  REQUIRE(ground.bytes() == "aaaaaxyz" + std::string(kBlock - 8, 'a') + kBs + kBs);
}

TEST_CASE("a file that cannot be opened is named") {
  TemporaryDirectory directory;

  const auto opened = open_system_file(directory.path("none"), 0);

  REQUIRE(opened.status().message() ==
          "opening " + directory.path("none") + ": No such file or directory");
}

}  // namespace
}  // namespace pv2::testing::system_file_test
