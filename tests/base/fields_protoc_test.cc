// SPDX-License-Identifier: Apache-2.0
//
// protoc as the oracle of the wire format: it must decode our bytes to our values, and we must
// decode its bytes to its values. If protoc is not installed, the test says so and passes.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/everything.h"
#include "pv2/base/fields.h"
#include "support/catch.h"

namespace pv2::testing::fields_protoc_test {

using pv2::test::Empties;
using pv2::test::Everything;
using pv2::test::EverythingSource;

namespace {

namespace fs = std::filesystem;

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

bool has_protoc() {
  if (std::system("protoc --version >/dev/null 2>&1") == 0) return true;
  WARN("protoc is not installed (Debian: protobuf-compiler): the wire format was not compared");
  return false;
}

/// A directory of its own with the .proto file in it; removed at the end. Owned by one thread.
class Protoc {
 public:
  Protoc() {
    std::string pattern = (fs::temp_directory_path() / "pv2-protoc-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    directory_ = pattern;
    write("everything.proto", test::kEverythingProto);
  }
  ~Protoc() {
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }
  Protoc(const Protoc&) = delete;
  Protoc& operator=(const Protoc&) = delete;

  /// Protobuf's text form of an encoded Batch.
  std::string text_of(const std::string& bytes) { return run("--decode=Batch", bytes); }
  /// The encoding of a Batch given as text.
  std::string bytes_of(const std::string& text) {
    return run("--deterministic_output --encode=Batch", text);
  }

 private:
  void write(const std::string& name, const std::string& content) {
    std::ofstream(directory_ / name, std::ios::binary) << content;
  }
  std::string run(const std::string& verb, const std::string& input) {
    write("in", input);
    const std::string command =
        "cd '" + directory_.string() + "' && protoc " + verb + " everything.proto <in >out 2>err";
    const int exit = std::system(command.c_str());
    CAPTURE(verb, read("err"));
    REQUIRE(exit == 0);
    return read("out");
  }
  std::string read(const std::string& name) {
    std::ifstream file(directory_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path directory_;
};

}  // namespace

TEST_CASE("protoc writes the same bytes for the same values") {
  if (!has_protoc()) return;
  Protoc protoc;
  Batch batch = random_batch(11, Empties::kNever);
  const std::string ours = encoded(batch);

  const std::string theirs = protoc.bytes_of(protoc.text_of(ours));

  REQUIRE(theirs.size() == ours.size());
  REQUIRE((theirs == ours));  // in brackets: the difference is unreadable as text
}

TEST_CASE("values with empty lists survive a round trip through protoc") {
  if (!has_protoc()) return;
  Protoc protoc;
  Batch batch = random_batch(12, Empties::kAllowed);
  const std::string ours = encoded(batch);

  const std::string theirs = protoc.bytes_of(protoc.text_of(ours));

  // protoc writes the marks last, so the bytes have another order and the same size.
  CHECK(theirs.size() == ours.size());
  Batch read;
  REQUIRE(decode_fields(read, FieldSelection::kAll, theirs).ok());
  REQUIRE((read.items == batch.items));
}

TEST_CASE("protoc reads our fields by their names and values") {
  if (!has_protoc()) return;
  Protoc protoc;
  Batch batch;
  batch.items.emplace_back();

  const std::string text = protoc.text_of(encoded(batch));

  for (const char* line : {"flag: true", "i8: -1", "u64: 4", "colour: BLUE", "wide: -9", "bits: 9",
                           "single: 1.5", "real: 2.5", "text: \"text\"", "timeout: 30",
                           "at: 3600000000", "id: 7", "maybe: 8", "numbers: -1", "texts: \"\"",
                           "flags: true", "colours: GREEN", "second: \"one\"", "value: 1"}) {
    CHECK_THAT(text, ContainsSubstring(line));
  }
}

}  // namespace pv2::testing::fields_protoc_test
