// SPDX-License-Identifier: Apache-2.0
//
// What the step log asks of its file: which blocks it writes for a commit, and from where in
// memory.

#include "log/step_log.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "log_fixture.h"
#include "support/catch.h"

namespace pv2::testing::step_log_test {
namespace {

constexpr std::size_t kBlock = SegmentFile::kBlockBytes;

// Files in memory. It notes what is written durably.
class NotingFiles final : public SegmentFiles {
 public:
  struct Write {
    std::size_t from = 0;
    std::size_t bytes = 0;
    bool operator==(const Write&) const = default;
  };

  Result<std::unique_ptr<SegmentFile>> create(const std::string& path) override {
    return std::unique_ptr<SegmentFile>(std::make_unique<File>(*this, path));
  }
  Result<std::unique_ptr<SegmentFile>> open(const std::string& path) override {
    return create(path);
  }
  Result<std::uint64_t> free_bytes(const std::string&) override { return UINT64_MAX; }

  /// What was written durably since the last call of this.
  std::vector<Write> writes() { return std::exchange(writes_, {}); }
  [[nodiscard]] const std::string& bytes(const std::string& path) { return files_[path]; }

 private:
  class File final : public SegmentFile {
   public:
    File(NotingFiles& files, std::string path) : files_(files), path_(std::move(path)) {}
    Status write(std::uint64_t offset, std::string_view bytes) override {
      std::string& file = files_.files_[path_];
      file.resize(std::max(file.size(), offset + bytes.size()));
      file.replace(offset, bytes.size(), bytes);
      return Status();
    }
    Status sync() override { return Status(); }
    Status write_durably(std::uint64_t offset, std::string_view blocks) override {
      files_.writes_.push_back({offset, blocks.size()});
      return SegmentFile::write_durably(offset, blocks);
    }
    Status cut(std::uint64_t bytes) override {
      files_.files_[path_].resize(bytes);
      return Status();
    }

   private:
    NotingFiles& files_;
    const std::string path_;
  };

  std::map<std::string, std::string> files_;
  std::vector<Write> writes_;
};

// Takes every checkpoint.
class AnyDatabase final : public CheckpointWriter {
  Status write_checkpoint(const Overlay::Checkpoint&, SegmentNumber) override { return Status(); }
};

using Writes = std::vector<NotingFiles::Write>;

// A log whose files have `segment_bytes` bytes.
struct Ground {
  NotingFiles files;
  AnyDatabase database;
  Overlay overlay;
  SegmentPool pool;
  Checkpointer checkpointer;
  StepLog log;
  std::uint64_t commits = 0;
  std::string frames;

  explicit Ground(std::size_t segment_bytes)
      : pool(files, [](const std::string&) { return Status(); }, "store",
             {.bytes_min = segment_bytes, .bytes_max = segment_bytes, .files_max = 3}),
        checkpointer(overlay, pool, database, Checkpointer::Thread::kCaller),
        log(files, "store", overlay, checkpointer) {
    log.begin_with({1});
  }
  /// Appends a frame of `bytes` bytes, and returns what that wrote.
  Writes append(std::size_t bytes) {
    Unit unit(++commits);
    const std::size_t rest = frame_of(1, 1, 1'000).size() - 1'000;
    unit.insert("k", std::string(bytes - rest, static_cast<char>('a' + commits)));
    REQUIRE(unit.frame(1).size() == bytes);
    frames += unit.frame(1);
    static_cast<void>(files.writes());
    REQUIRE(log.append(unit.list()).ok());
    return files.writes();
  }
};

TEST_CASE("a commit writes the blocks that its frame touches, and no others") {
  Ground ground(10 * kBlock);
  REQUIRE(ground.append(1'000) == Writes{{0, kBlock}});
  REQUIRE(ground.append(1'000) == Writes{{0, kBlock}});                // the same block again
  REQUIRE(ground.append(kBlock) == Writes{{0, 2 * kBlock}});           // into the next one
  REQUIRE(ground.append(kBlock - 2'000) == Writes{{kBlock, kBlock}});  // up to its end
  REQUIRE(ground.append(200) == Writes{{2 * kBlock, kBlock}});  // at the beginning of a block
  REQUIRE(ground.append(3 * kBlock) == Writes{{2 * kBlock, 4 * kBlock}});

  const std::string& file = ground.files.bytes("store/PV2-STEPS-1");
  REQUIRE(file.substr(0, ground.frames.size()) == ground.frames);
  REQUIRE(file.find_first_not_of('\0', ground.frames.size()) == std::string::npos);
}

TEST_CASE("a frame that is larger than a file is written in whole blocks, too") {
  Ground ground(1'000);

  REQUIRE(ground.append(kBlock + 500) == Writes{{0, 2 * kBlock}});

  REQUIRE(ground.files.bytes("store/PV2-STEPS-1").substr(0, kBlock + 500) == ground.frames);
}

}  // namespace
}  // namespace pv2::testing::step_log_test
