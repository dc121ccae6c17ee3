// SPDX-License-Identifier: Apache-2.0
//
// Frames and their checksum: known answers, every torn length, every flipped bit.

#include "pv2/base/frame.h"

#include <string>

#include "crc32c_portable.h"
#include "pv2/base/crc32c.h"
#include "pv2/base/random.h"
#include "support/catch.h"

namespace pv2::testing::frame_test {

TEST_CASE("CRC-32C gives the published answers") {
  // The check value of the algorithm, and the vectors of RFC 3720, B.4.
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xE3069283);
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AA);
  CHECK(crc32c(std::string(32, '\xFF')) == 0x62A8AB43);
}

TEST_CASE("the processor's instruction and the table agree, in one piece and in two") {
  Random random(1);
  std::string bytes;
  for (int size = 0; size < 300; ++size) {
    const std::uint32_t whole = crc32c(bytes);
    REQUIRE(whole == internal::crc32c_portable(bytes, 0));
    const std::size_t cut = random.below(bytes.size() + 1);
    const std::string_view view = bytes;
    REQUIRE(whole == crc32c(view.substr(cut), crc32c(view.substr(0, cut))));
    REQUIRE(whole == internal::crc32c_portable(view.substr(cut),
                                               internal::crc32c_portable(view.substr(0, cut), 0)));
    bytes += static_cast<char>(random.next());
  }
}

TEST_CASE("frames are read back one after the other") {
  std::string stored;
  append_frame(stored, "first");
  append_frame(stored, "");
  append_frame(stored, std::string(1000, 'x'));

  std::string_view input = stored;
  CHECK(read_frame(input) == "first");
  CHECK(read_frame(input) == "");
  CHECK(read_frame(input) == std::string(1000, 'x'));
  CHECK(input.empty());
  CHECK_FALSE(read_frame(input).has_value());
}

TEST_CASE("the bytes of a frame are the ones in the format's description") {
  std::string stored;
  append_frame(stored, "123456789");
  // The checksum covers the length (9, little-endian) and the bytes.
  const std::uint32_t crc = crc32c(std::string("\x09\0\0\0", 4) + "123456789");
  std::string expected;
  for (int shift = 0; shift < 32; shift += 8) expected += static_cast<char>(crc >> shift);
  expected += std::string("\x09\0\0\0", 4) + "123456789";
  CHECK(stored == expected);
}

TEST_CASE("a torn frame is no frame, and the input stays where it was") {
  std::string stored;
  append_frame(stored, "a record");
  for (std::size_t size = 0; size < stored.size(); ++size) {
    const std::string torn(stored, 0, size);
    std::string_view input = torn;
    REQUIRE_FALSE(read_frame(input).has_value());
    REQUIRE(input.size() == size);
    REQUIRE(input.data() == torn.data());
  }
}

TEST_CASE("each flipped bit is found, in the header as well") {
  std::string stored;
  append_frame(stored, "a record of some bytes");
  append_frame(stored, "and its successor");
  for (std::size_t bit = 0; bit < 8 * (kFrameHeaderBytes + 22); ++bit) {
    std::string damaged = stored;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    std::string_view input = damaged;
    REQUIRE_FALSE(read_frame(input).has_value());
  }
}

TEST_CASE("a run of zeros is not a frame") {
  const std::string zeros(4096, '\0');
  std::string_view input = zeros;
  CHECK_FALSE(read_frame(input).has_value());
}

TEST_CASE("a frame built in place is the same as one that was appended") {
  std::string in_place = "before";
  {
    FrameWriter frame(in_place);
    in_place += "part one, ";
    in_place += "part two";
    frame.finish();
  }
  std::string appended = "before";
  append_frame(appended, "part one, part two");
  CHECK(in_place == appended);
}

TEST_CASE("a frame that is not finished leaves nothing behind") {
  std::string out = "before";
  {
    FrameWriter frame(out);
    out += "half a rec";
  }
  CHECK(out == "before");
}

}  // namespace pv2::testing::frame_test
