// SPDX-License-Identifier: Apache-2.0
//
// The wire primitives: what was appended is read back, and nothing malformed gets through. Inputs
// are copied to strings of their exact size, so that a sanitizer sees a read beyond the end.

#include "pv2/base/wire.h"

#include <pv2/base/status.h>

#include <limits>
#include <vector>

#include "support/catch.h"

namespace pv2::testing::wire_test {

namespace {

/// Reads all of it; the message of the failure, or empty.
std::string fault_in(std::string bytes) {
  WireReader reader(bytes);
  while (reader.next()) {
  }
  return std::string(reader.status().message());
}

}  // namespace

TEST_CASE("zigzag maps numbers near zero to small ones and back") {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  CHECK(zigzag(0) == 0);
  CHECK(zigzag(-1) == 1);
  CHECK(zigzag(1) == 2);
  CHECK(zigzag(kMax) == ~1ULL);
  CHECK(zigzag(kMin) == ~0ULL);
  for (const std::int64_t value : {kMin, kMin + 1, -64L, -1L, 0L, 1L, 64L, kMax}) {
    CHECK(unzigzag(zigzag(value)) == value);
  }
}

TEST_CASE("varints have the bytes that protobuf's documentation shows") {
  std::string out;
  append_varint_field(out, 1, 150);
  CHECK(out == "\x08\x96\x01");

  out.clear();
  append_length_delimited(out, 2, "testing");
  CHECK(out == "\x12\x07testing");

  out.clear();
  append_varint(out, ~0ULL);
  CHECK(out == "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01");
}

TEST_CASE("every kind of field is read back, at every length of varint") {
  std::string bytes;
  std::vector<std::uint64_t> values;
  for (int bit = 0; bit < 64; ++bit) {
    values.push_back(1ULL << bit);
    values.push_back((1ULL << bit) - 1);
  }
  for (const std::uint64_t value : values) {
    append_varint_field(bytes, 1, value);
    append_sint_field(bytes, 2, static_cast<std::int64_t>(value));
    append_fixed32_field(bytes, 3, static_cast<std::uint32_t>(value));
    append_fixed64_field(bytes, 4, value);
    append_length_delimited(bytes, kWireNumberMax, std::string(value % 300, 'x'));
  }

  WireReader reader(bytes);
  for (const std::uint64_t value : values) {
    REQUIRE((reader.next() && reader.number() == 1));
    REQUIRE(reader.varint() == value);
    REQUIRE((reader.next() && reader.number() == 2));
    REQUIRE(reader.sint() == static_cast<std::int64_t>(value));
    REQUIRE((reader.next() && reader.number() == 3));
    REQUIRE(reader.fixed32() == static_cast<std::uint32_t>(value));
    REQUIRE((reader.next() && reader.number() == 4));
    REQUIRE(reader.fixed64() == value);
    REQUIRE((reader.next() && reader.number() == kWireNumberMax));
    REQUIRE(reader.bytes().size() == value % 300);
  }
  CHECK_FALSE(reader.next());
  CHECK(reader.ok());
}

TEST_CASE("malformed input is refused with the reason and the place") {
  CHECK(fault_in("").empty());
  CHECK_THAT(fault_in("\x08"), StartsWith("the bytes end in the middle"));
  CHECK_THAT(fault_in("\x08\x80"), StartsWith("the bytes end in the middle"));
  CHECK_THAT(fault_in("\x0A\x05"
                      "four"),
             StartsWith("the bytes end in the middle"));
  CHECK_THAT(fault_in("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01x"),
             StartsWith("the bytes end in the middle"));
  CHECK_THAT(fault_in("\x0D\x01\x02\x03"), StartsWith("the bytes end in the middle"));
  CHECK_THAT(fault_in("\x09\x01\x02\x03\x04\x05\x06\x07"), EndsWith("(at byte 1 of 8)"));
  CHECK_THAT(fault_in("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02"),
             StartsWith("a varint has more than 64 bits"));
  CHECK_THAT(fault_in("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
             StartsWith("a varint has more than 64 bits"));
  CHECK_THAT(fault_in(std::string("\x00\x01", 2)), StartsWith("a field number is 0"));
  CHECK_THAT(fault_in("\x80\x80\x80\x80\x10\x01"), StartsWith("a field number is 0 or too large"));
  for (const char* type : {"\x0B", "\x0C", "\x0E", "\x0F"}) {
    CHECK_THAT(fault_in(type), StartsWith("field 1 has wire type"));
  }
}

TEST_CASE("asking for a value of another kind than was written fails the reader") {
  const std::string bytes = "\x08\x05\x12\x01x";
  WireReader reader(bytes);
  REQUIRE(reader.next());
  CHECK(reader.bytes().empty());
  CHECK_FALSE(reader.ok());
  CHECK_FALSE(reader.next());
  CHECK(reader.status().code() == StatusCode::kCorruption);
  CHECK_THAT(std::string(reader.status().message()), StartsWith("field 1 was written as a varint"));
}

TEST_CASE("fields that nobody asks for are skipped") {
  std::string bytes;
  append_length_delimited(bytes, 1, "skipped");
  append_fixed64_field(bytes, 2, 1);
  append_fixed32_field(bytes, 3, 1);
  append_varint_field(bytes, 4, 9);

  std::uint64_t found = 0;
  WireReader reader(bytes);
  while (reader.next()) {
    if (reader.number() == 4) found = reader.varint();
  }

  CHECK(reader.status().ok());
  CHECK(found == 9);
}

}  // namespace pv2::testing::wire_test
