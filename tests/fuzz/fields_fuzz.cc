// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the field codec with arbitrary bytes: decoding ends in a Status or in a value, and a
// decoded value encodes to bytes that mean the same. Printing must cope with every decoded value.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/everything.h"
#include "pv2/base/assert.h"
#include "pv2/base/fields.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pv2;
  const std::string_view input(reinterpret_cast<const char*>(data), size);

  test::Everything object;
  if (!decode_fields(object, FieldSelection::kAll, input).ok()) return 0;

  // Compared as bytes, because a NaN is not equal to itself.
  std::string once;
  encode_fields(object, FieldSelection::kAll, once);
  test::Everything again;
  const Status status = decode_fields(again, FieldSelection::kAll, once);
  PV2_ASSERT(status.ok(), "what the encoder writes can be read");
  std::string twice;
  encode_fields(again, FieldSelection::kAll, twice);
  PV2_ASSERT(once == twice, "an object and its copy through bytes have the same encoding");
  PV2_ASSERT(is_utf8(print_fields(object)), "what people are shown is text");
  return 0;
}
