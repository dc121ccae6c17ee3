// SPDX-License-Identifier: Apache-2.0
//
// The files of the operating system: what is written durably can be read, whether or not the file
// system takes these blocks past the page cache, and a file without a name takes nothing.

#include "pv2/store/segment_files.h"

#include <array>
#include <filesystem>
#include <memory>
#include <string>

#include "support/catch.h"
#include "support/temporary_directory.h"

namespace pv2::testing::segment_files_test {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kBlock = SegmentFile::kBlockBytes;

// Two blocks at an address at which blocks may be.
struct Blocks {
  alignas(kBlock) std::array<char, 2 * kBlock> bytes{};
  explicit Blocks(char with) { bytes.fill(with); }
  [[nodiscard]] std::string_view one() const { return {bytes.data(), kBlock}; }
  [[nodiscard]] std::string_view both() const { return {bytes.data(), 2 * kBlock}; }
};

struct Ground {
  TemporaryDirectory directory;
  std::string path = directory.path("file");
  std::unique_ptr<SegmentFile> file;
  std::unique_ptr<Blocks> a = std::make_unique<Blocks>('a');
  std::unique_ptr<Blocks> b = std::make_unique<Blocks>('b');

  Ground() {
    auto created = system_segment_files().create(path);
    REQUIRE(created.ok());
    file = *std::move(created);
  }
};

TEST_CASE("blocks that are written durably are in the file, and make it grow") {
  Ground ground;

  REQUIRE(ground.file->write_durably(0, ground.a->both()).ok());
  REQUIRE(ground.file->write_durably(kBlock, ground.b->one()).ok());  // within the file
  REQUIRE(ground.file->write_durably(kBlock, ground.b->both()).ok());
  REQUIRE(ground.file->write_durably(2 * kBlock, ground.a->one()).ok());

  REQUIRE(read_file(ground.path) ==
          std::string(kBlock, 'a') + std::string(kBlock, 'b') + std::string(kBlock, 'a'));
}

TEST_CASE("a file may be written in both ways in turn") {
  Ground ground;

  REQUIRE(ground.file->write(0, "0123456789").ok());
  REQUIRE(ground.file->write_durably(kBlock, ground.a->one()).ok());
  REQUIRE(ground.file->write(5, "xyz").ok());
  REQUIRE(ground.file->sync().ok());
  REQUIRE(ground.file->write_durably(kBlock, ground.b->one()).ok());

  const std::string bytes = read_file(ground.path);
  REQUIRE(bytes.substr(0, 10) == "01234xyz89");
  REQUIRE(bytes.substr(kBlock) == std::string(kBlock, 'b'));
}

// What a disk with larger sectors answers to a block, all disks answer to an offset of 100.
TEST_CASE("what the disk does not take past the page cache is written through it") {
  Ground ground;

  REQUIRE(ground.file->write(0, std::string(2 * kBlock + 100, '.')).ok());
  REQUIRE(ground.file->write_durably(100, ground.a->both()).ok());
  REQUIRE(ground.file->write_durably(0, ground.b->one()).ok());

  const std::string bytes = read_file(ground.path);
  REQUIRE(bytes.substr(0, kBlock) == std::string(kBlock, 'b'));
  REQUIRE(bytes.substr(kBlock) == std::string(kBlock + 100, 'a'));
}

TEST_CASE("nothing is durable in a file that was removed") {
  Ground ground;
  fs::remove(ground.path);

  const Status written = ground.file->write_durably(0, ground.a->one());

  REQUIRE(written.code() == StatusCode::kIoError);
  REQUIRE(written.message() == ground.path + " was removed in use");
}

}  // namespace
}  // namespace pv2::testing::segment_files_test
