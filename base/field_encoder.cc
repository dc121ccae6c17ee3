// SPDX-License-Identifier: Apache-2.0
//
// The rare cases of FieldEncoder: a message of 128 bytes or more, and one that is nested too
// deeply.

#include "pv2/base/field_encoder.h"

#include <stdexcept>

namespace pv2 {

void FieldEncoder::insert_length(std::size_t body, std::size_t size) {
  std::string length;
  append_varint(length, size);
  out_.replace(body - 1, 1, length);
}

void FieldEncoder::throw_too_deep(std::uint32_t number) {
  throw std::length_error("field " + std::to_string(number) + " lies more than " +
                          std::to_string(kFieldDepthMax) +
                          " messages deep; keep a flat list with indexes instead");
}

}  // namespace pv2
