// SPDX-License-Identifier: Apache-2.0
//
// How a file in LevelDB's log format ends, told from its bytes: what a power cut may leave of a
// write that was not synced, and what no power cut leaves.

#include "leveldb_log_file.h"

#include <algorithm>
#include <string>
#include <vector>

#include "leveldb_record.h"
#include "support/catch.h"

namespace pv2::testing::leveldb_log_file_test {
namespace {

using End = LogFileContents::End;
constexpr std::size_t kSector = 512;

// Two short records, and one in the first four sectors.
struct File {
  std::string before = record_of("first") + record_of("second");
  std::string whole = before + record_of(std::string(1'800, 'x'));
};

TEST_CASE("a file whose last record is there ends clean") {
  const File file;

  const LogFileContents contents = read_log_file(file.whole);

  REQUIRE(contents.end == End::kClean);
  REQUIRE(contents.good_bytes == file.whole.size());
  REQUIRE(contents.records == std::vector<std::string>{"first", "second", std::string(1'800, 'x')});
}

TEST_CASE("zeros behind the last record are a write of which nothing reached the disk") {
  const File file;
  const std::size_t zeros = GENERATE(1, 6, 7, 100, 40'000);

  const LogFileContents contents = read_log_file(file.whole + std::string(zeros, '\0'));

  // A rest that is too short for a header is the end of a write, as without a power cut.
  REQUIRE(contents.end == (zeros < 7 ? End::kTorn : End::kUnwritten));
  REQUIRE(contents.good_bytes == file.whole.size());
  REQUIRE(contents.records.size() == 3);
}

TEST_CASE("a last record with zeros from a sector on was not written to its end") {
  const File file;
  REQUIRE(file.before.size() == 25);
  REQUIRE(file.whole.size() == 1'832);
  const auto end_with_zeros_from = [&](std::size_t at) {
    std::string bytes = file.whole;
    bytes.replace(at, bytes.size() - at, bytes.size() - at, '\0');
    const LogFileContents contents = read_log_file(bytes);
    REQUIRE(contents.good_bytes == 25);
    REQUIRE(contents.records.size() == 2);
    return contents.end;
  };
  REQUIRE(end_with_zeros_from(25) == End::kUnwritten);
  REQUIRE(end_with_zeros_from(26) == End::kUnwritten);
  REQUIRE(end_with_zeros_from(512) == End::kUnwritten);
  REQUIRE(end_with_zeros_from(513) == End::kUnwritten);
  REQUIRE(end_with_zeros_from(1'536) == End::kUnwritten);
  // The last sector is there, with a part of its bytes.
  REQUIRE(end_with_zeros_from(1'537) == End::kDamaged);
  REQUIRE(end_with_zeros_from(1'831) == End::kDamaged);
}

TEST_CASE("a last record without any of its sectors was not written as a whole") {
  const File file;
  const std::size_t first = GENERATE(0, 1, 2, 3);  // sectors
  const std::size_t from = std::max(first * kSector, file.before.size());
  const std::size_t to = std::min((first + 1) * kSector, file.whole.size());
  std::string bytes = file.whole;
  bytes.replace(from, to - from, to - from, '\0');
  INFO("without bytes " << from << " to " << to);
  REQUIRE(read_log_file(bytes).end == End::kUnwritten);

  bytes[from] = 'x';
  REQUIRE(read_log_file(bytes).end == End::kDamaged);
}

TEST_CASE("what sectors of zeros at the end do not explain is damage") {
  const File file;
  std::string bytes = file.whole;
  SECTION("zeros in place of a record with another one behind it") {
    bytes.replace(0, record_of("first").size(), record_of("first").size(), '\0');
  }
  SECTION("a flipped bit in the last record") { bytes[1'000] ^= 1; }
  SECTION("a flipped bit in the first record") { bytes[10] ^= 1; }
  SECTION("a flipped bit in a record with others and many zeros behind it") {
    bytes[10] ^= 1;
    bytes += std::string(5'000, '\0');
  }
  SECTION("a damaged length that reaches over the zeros, of a record that is whole") {
    bytes = file.before;
    bytes[record_of("first").size() + 5] = 8;
    bytes += std::string(5'000, '\0');
  }

  REQUIRE(read_log_file(bytes).end == End::kDamaged);
}

}  // namespace
}  // namespace pv2::testing::leveldb_log_file_test
