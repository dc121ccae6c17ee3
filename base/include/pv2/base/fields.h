// SPDX-License-Identifier: Apache-2.0
//
// Fields: one description per class encodes it, decodes it and shows it to people, in protobuf's
// wire format and without a code generator. Which C++ type becomes what, and how a class may change
// over the years, is in docs/fields.md.
//
//     struct Order {
//       std::string order;
//       std::vector<std::int32_t> parcels;
//       void fields(auto& f) { f.arg(1, "order", order); f(2, "parcels", parcels); }
//     };
//
// fields() must be public, and calls f or f.arg for every member that is to be stored, always with
// the same numbers. These functions pass on what fields() throws. After an error or an exception in
// decoding, the object is half read; throw it away.

#pragma once

#include <string>
#include <string_view>

#include "pv2/base/field_checker.h"
#include "pv2/base/field_decoder.h"
#include "pv2/base/field_encoder.h"
#include "pv2/base/field_printer.h"
#include "pv2/base/field_types.h"
#include "pv2/base/status.h"

namespace pv2 {

/// Appends the selected fields of `object` to `out`; does not change the object. If fields()
/// throws, `out` ends in a part of an encoding and is of no use.
template <HasFields T>
void encode_fields(T& object, FieldSelection which, std::string& out) {
  FieldEncoder encoder(out, which);
  object.fields(encoder);
}

/// Assigns the selected fields of `object` from `bytes`; a field that the bytes lack keeps its
/// value. kCorruption names the field that could not be read.
template <HasFields T>
Status decode_fields(T& object, FieldSelection which, std::string_view bytes) {
  FieldDecoder decoder(bytes, which);
  if (decoder.status().ok()) object.fields(decoder);
  return decoder.status();
}

/// All fields as one line of JSON, for people.
template <HasFields T>
[[nodiscard]] std::string print_fields(T& object) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  FieldPrinter printer(json);
  object.fields(printer);
  json.end_object();
  return text;
}

/// kInvalidArgument when the description itself is wrong: a number is used twice, or out of range.
/// To be called when a class is registered.
template <HasFields T>
Status validate_fields(T& object) {
  FieldChecker checker;
  object.fields(checker);
  return checker.status();
}

}  // namespace pv2
