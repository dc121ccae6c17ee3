// SPDX-License-Identifier: Apache-2.0
//
// The message names 255, as every enumeration that is stored has one byte.

#include "records/named_values.h"

#include <string>

namespace pv2 {

Status NamedValues::status(std::string_view what) const {
  if (too_large_ == 0) return Status();
  return Status(StatusCode::kCorruption, std::string(what) + " names value " +
                                             std::to_string(too_large_) +
                                             " where 255 is the largest");
}

}  // namespace pv2
