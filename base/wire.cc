// SPDX-License-Identifier: Apache-2.0
//
// The error messages of WireReader. Everything fast is inline in the header.

#include "pv2/base/wire.h"

#include "pv2/base/status.h"

namespace pv2 {

std::string_view to_string(WireType type) noexcept {
  switch (type) {
    case WireType::kVarint:
      return "a varint";
    case WireType::kFixed64:
      return "64 fixed bits";
    case WireType::kBytes:
      return "bytes";
    case WireType::kFixed32:
      return "32 fixed bits";
  }
  return "an unknown wire type";
}

Status WireReader::status() const {
  std::string text;
  switch (fault_) {
    case Fault::kNone:
      return Status();
    case Fault::kTorn:
      text = "the bytes end in the middle of a value";
      break;
    case Fault::kLongVarint:
      text = "a varint has more than 64 bits";
      break;
    case Fault::kNumber:
      text = "a field number is 0 or too large";
      break;
    case Fault::kUnknownType:
      text = "field " + std::to_string(number_) + " has wire type " +
             std::to_string(static_cast<unsigned>(type_)) + ", which is not read here";
      break;
    case Fault::kOtherType:
      text = "field " + std::to_string(number_) + " was written as ";
      text += to_string(type_);
      text += ", which is not what its reader expects";
      break;
  }
  text +=
      " (at byte " + std::to_string(at_ - begin_) + " of " + std::to_string(end_ - begin_) + ")";
  return Status(StatusCode::kCorruption, std::move(text));
}

}  // namespace pv2
