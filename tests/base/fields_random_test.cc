// SPDX-License-Identifier: Apache-2.0
//
// Properties of the field codec over random values. Each test names its seed when it fails.

#include <string>
#include <string_view>
#include <vector>

#include "base/everything.h"
#include "pv2/base/fields.h"
#include "support/catch.h"

namespace pv2::testing::fields_random_test {

using pv2::test::Empties;
using pv2::test::Everything;
using pv2::test::EverythingSource;

namespace {

std::string encoded(Everything& object, FieldSelection which = FieldSelection::kAll) {
  std::string bytes;
  encode_fields(object, which, bytes);
  return bytes;
}

Status decode(Everything& object, std::string_view bytes) {
  return decode_fields(object, FieldSelection::kAll, bytes);
}

/// The bytes of each field, in order.
std::vector<std::string> split(std::string_view message) {
  std::vector<std::string> parts;
  WireReader reader(message);
  std::size_t start = 0;
  while (reader.next()) {
    const std::size_t end = message.size() - reader.remaining();
    parts.emplace_back(message.substr(start, end - start));
    start = end;
  }
  return parts;
}

std::string join(const std::vector<std::string>& parts) {
  std::string whole;
  for (const std::string& part : parts) whole += part;
  return whole;
}

}  // namespace

TEST_CASE("an encoded value decodes to the same value, whatever the object held before") {
  const std::uint64_t seed = GENERATE(1, 2, 3);
  CAPTURE(seed);
  EverythingSource source(seed, Empties::kAllowed);
  Everything read;
  for (int round = 0; round < 300; ++round) {
    Everything written = source.next();

    REQUIRE(decode_fields(read, FieldSelection::kArguments,
                          encoded(written, FieldSelection::kArguments))
                .ok());
    REQUIRE(
        decode_fields(read, FieldSelection::kState, encoded(written, FieldSelection::kState)).ok());

    REQUIRE(read == written);
  }
}

TEST_CASE("unknown fields among the known ones are skipped") {
  EverythingSource source(4, Empties::kAllowed);
  Random random(4);
  for (int round = 0; round < 100; ++round) {
    Everything written = source.next();
    std::vector<std::string> parts = split(encoded(written));
    for (std::string& part : parts) {
      const auto number = static_cast<std::uint32_t>(1500 + random.below(100'000'000));
      if (number == kEmptyFieldsNumber) continue;
      switch (random.below(5)) {
        case 0:
          append_varint_field(part, number, random.next());
          break;
        case 1:
          append_fixed32_field(part, number, 1);
          break;
        case 2:
          append_fixed64_field(part, number, 1);
          break;
        case 3:
          append_length_delimited(part, number, "from a newer version");
          break;
        default:
          append_varint_field(part, kEmptyFieldsNumber, number);
          break;
      }
    }

    Everything read;
    REQUIRE(decode(read, join(parts)).ok());

    REQUIRE(read == written);
  }
}

TEST_CASE("the order of fields in the bytes does not matter") {
  EverythingSource source(5, Empties::kAllowed);
  Random random(5);
  for (int round = 0; round < 100; ++round) {
    Everything written = source.next();
    std::vector<std::string> parts = split(encoded(written));
    // The elements of one list keep their order, as they do in protobuf: only neighbours of
    // different fields change places.
    for (std::size_t swaps = 4 * parts.size(); swaps > 0; --swaps) {
      const std::size_t i = random.below(parts.size() - 1);
      WireReader left(parts[i]);
      WireReader right(parts[i + 1]);
      REQUIRE((left.next() && right.next()));
      if (left.number() != right.number()) std::swap(parts[i], parts[i + 1]);
    }

    Everything read;
    REQUIRE(decode(read, join(parts)).ok());

    REQUIRE(read == written);
  }
}

TEST_CASE("bytes cut anywhere but between two fields are refused") {
  EverythingSource source(6, Empties::kAllowed);
  for (int round = 0; round < 5; ++round) {
    Everything written = source.next();
    const std::string bytes = encoded(written);
    std::vector<bool> is_boundary(bytes.size() + 1, false);
    is_boundary[0] = true;
    std::size_t at = 0;
    for (const std::string& part : split(bytes)) is_boundary[at += part.size()] = true;

    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
      // A copy of exactly this size, so that the address sanitizer sees a read beyond the end.
      const std::string prefix(bytes, 0, cut);
      Everything read;
      const Status status = decode(read, prefix);
      CAPTURE(round, cut, status.to_string());
      REQUIRE(status.ok() == is_boundary[cut]);
    }
  }
}

TEST_CASE("damaged bytes decode to a value or to a Status, and do no harm") {
  EverythingSource source(7, Empties::kAllowed);
  Random random(7);
  int understood = 0;
  for (int round = 0; round < 3000; ++round) {
    Everything written = source.next();
    std::string bytes = encoded(written);
    if (round % 2 == 0) bytes.resize(random.below(40));
    for (std::uint64_t hits = 1 + random.below(4); hits > 0 && !bytes.empty(); --hits) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.next());
    }

    Everything read;
    const Status status = decode(read, bytes);

    if (!status.ok()) {
      REQUIRE(status.code() == StatusCode::kCorruption);
      continue;
    }
    ++understood;
    // Compared as bytes, because a damaged number may have become NaN.
    Everything again;
    REQUIRE(decode(again, encoded(read)).ok());
    REQUIRE(encoded(again) == encoded(read));
    REQUIRE_FALSE(print_fields(read).empty());
  }
  CHECK(understood > 0);
}

}  // namespace pv2::testing::fields_random_test
