// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the reader of frames: from arbitrary bytes it takes only frames that append_frame() would
// have written, never reads beyond the end, and leaves its input alone when there is no frame. The
// same bytes, in a proper frame, must be read back.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pv2/base/assert.h"
#include "pv2/base/frame.h"
#include "pv2/base/status.h"
#include "pv2/base/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pv2;
  const std::string_view input(reinterpret_cast<const char*>(data), size);

  std::string_view rest = input;
  std::string rewritten;
  while (const std::optional<std::string_view> bytes = read_frame(rest)) {
    append_frame(rewritten, *bytes);
  }
  PV2_ASSERT(rewritten + std::string(rest) == input, "frames and the rest are the whole input");

  std::string framed;
  append_frame(framed, input);
  std::string_view reader = framed;
  PV2_ASSERT(read_frame(reader) == input && reader.empty(), "a frame gives back its bytes");

  WireReader fields(input);
  while (fields.next()) {
    PV2_ASSERT(fields.number() >= 1 && fields.number() <= kWireNumberMax, "numbers are in range");
  }
  PV2_ASSERT(fields.ok() || !fields.status().message().empty(), "a refusal has a reason");
  return 0;
}
