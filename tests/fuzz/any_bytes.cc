// SPDX-License-Identifier: Apache-2.0
//
// main() of a fuzz harness when it is built without a fuzzer: passes no bytes, each single byte,
// and some random bytes, the same each time.

#include <pv2/base/random.h>

#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main() {
  const auto give = [](const std::string& bytes) {
    static_cast<void>(
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
  };
  give("");
  for (int byte = 0; byte < 256; ++byte) give(std::string(1, static_cast<char>(byte)));
  pv2::Random random(1);
  for (int i = 0; i < 500; ++i) {
    std::string bytes;
    for (std::uint64_t left = random.below(64); left > 0; --left) {
      bytes += static_cast<char>(random.below(256));
    }
    give(bytes);
  }
  return 0;
}
