// SPDX-License-Identifier: Apache-2.0
//
// The error messages for what FieldDecoder cannot decode.

#include "pv2/base/field_decoder.h"

namespace pv2 {

void FieldDecoder::fail(std::uint32_t number, std::string_view name, const Status& status) {
  std::string context = "field " + std::to_string(number) + " \"";
  context += name;
  context += '"';
  status_ = status.with_context(context);
}

Status FieldDecoder::wrong_type(const Entry& entry, WireType wanted) {
  std::string text = "expects ";
  text += to_string(wanted);
  text += ", but the bytes hold ";
  text += to_string(entry.type);
  text += "; was its number given to another type?";
  return Status(StatusCode::kCorruption, std::move(text));
}

Status FieldDecoder::out_of_range(std::uint64_t raw) {
  return Status(StatusCode::kCorruption, "the stored number does not fit its type (raw value " +
                                             std::to_string(raw) + "); was the type made smaller?");
}

Status FieldDecoder::too_deep() {
  return Status(StatusCode::kCorruption, "lies more than " + std::to_string(kFieldDepthMax) +
                                             " messages deep, which no encoder writes");
}

}  // namespace pv2
