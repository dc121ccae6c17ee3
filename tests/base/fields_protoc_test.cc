// SPDX-License-Identifier: Apache-2.0
//
// protoc as the oracle of the wire format: it must decode our bytes to our values, and we must
// decode its bytes to its values. If protoc is not installed, the test says so and passes.

#include <string>
#include <vector>

#include "base/everything.h"
#include "pv2/base/fields.h"
#include "support/catch.h"
#include "support/protoc.h"

namespace pv2::testing::fields_protoc_test {

using pv2::test::Empties;
using pv2::test::Everything;
using pv2::test::EverythingSource;

namespace {

struct Batch {
  std::vector<Everything> items;
  void fields(auto& f) { f(1, "items", items); }
};

Batch random_batch(std::uint64_t seed, Empties empties) {
  EverythingSource source(seed, empties);
  Batch batch;
  for (int i = 0; i < 300; ++i) batch.items.push_back(source.next());
  return batch;
}

std::string encoded(Batch& batch) {
  std::string bytes;
  encode_fields(batch, FieldSelection::kAll, bytes);
  return bytes;
}

}  // namespace

TEST_CASE("protoc writes the same bytes for the same values") {
  if (!has_protoc()) return;
  Protoc protoc(test::kEverythingProto);
  Batch batch = random_batch(11, Empties::kNever);
  const std::string ours = encoded(batch);

  const std::string theirs = protoc.bytes_of("Batch", protoc.text_of("Batch", ours));

  REQUIRE(theirs.size() == ours.size());
  REQUIRE((theirs == ours));  // in brackets: the difference is unreadable as text
}

TEST_CASE("values with empty lists survive a round trip through protoc") {
  if (!has_protoc()) return;
  Protoc protoc(test::kEverythingProto);
  Batch batch = random_batch(12, Empties::kAllowed);
  const std::string ours = encoded(batch);

  const std::string theirs = protoc.bytes_of("Batch", protoc.text_of("Batch", ours));

  // protoc writes the marks last, so the bytes have another order and the same size.
  CHECK(theirs.size() == ours.size());
  Batch read;
  REQUIRE(decode_fields(read, FieldSelection::kAll, theirs).ok());
  REQUIRE((read.items == batch.items));
}

TEST_CASE("protoc reads our fields by their names and values") {
  if (!has_protoc()) return;
  Protoc protoc(test::kEverythingProto);
  Batch batch;
  batch.items.emplace_back();

  const std::string text = protoc.text_of("Batch", encoded(batch));

  for (const char* line : {"flag: true", "i8: -1", "u64: 4", "colour: BLUE", "wide: -9", "bits: 9",
                           "single: 1.5", "real: 2.5", "text: \"text\"", "timeout: 30",
                           "at: 3600000000", "id: 7", "maybe: 8", "numbers: -1", "texts: \"\"",
                           "flags: true", "colours: GREEN", "second: \"one\"", "value: 1"}) {
    CHECK_THAT(text, ContainsSubstring(line));
  }
}

}  // namespace pv2::testing::fields_protoc_test
