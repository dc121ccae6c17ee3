// SPDX-License-Identifier: Apache-2.0
//
// Protoc: the compiler of protobuf as the oracle of the wire format. It needs protoc on the PATH,
// and no library of protobuf.

#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

#include "support/catch.h"

namespace pv2::testing {

/// Says so if protoc is not installed; then a test has nothing to compare with.
inline bool has_protoc() {
  if (std::system("protoc --version >/dev/null 2>&1") == 0) return true;
  WARN("protoc is not installed (Debian: protobuf-compiler): the wire format was not compared");
  return false;
}

/// A directory of its own with a .proto file in it; removed at the end. Owned by one thread.
class Protoc {
 public:
  explicit Protoc(std::string_view proto) {
    std::string pattern = (std::filesystem::temp_directory_path() / "pv2-protoc-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    directory_ = pattern;
    write("messages.proto", proto);
  }
  ~Protoc() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  Protoc(const Protoc&) = delete;
  Protoc& operator=(const Protoc&) = delete;

  /// Protobuf's text form of an encoded `message`.
  std::string text_of(const std::string& message, std::string_view bytes) {
    return run("--decode=" + message, bytes);
  }
  /// The encoding of a `message` given as text.
  std::string bytes_of(const std::string& message, std::string_view text) {
    return run("--deterministic_output --encode=" + message, text);
  }

 private:
  void write(const std::string& name, std::string_view content) {
    std::ofstream(directory_ / name, std::ios::binary) << content;
  }
  std::string run(const std::string& verb, std::string_view input) {
    write("in", input);
    const std::string command =
        "cd '" + directory_.string() + "' && protoc " + verb + " messages.proto <in >out 2>err";
    const int exit = std::system(command.c_str());
    CAPTURE(verb, read("err"));
    REQUIRE(exit == 0);
    return read("out");
  }
  std::string read(const std::string& name) {
    std::ifstream file(directory_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::filesystem::path directory_;
};

}  // namespace pv2::testing
