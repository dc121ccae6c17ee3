// SPDX-License-Identifier: Apache-2.0
//
// Whose row it is: the keys of a procedure's rows begin with its id, big-endian
// (docs/store-format.md).

#pragma once

#include <pv2/base/ids.h>

#include <cstddef>
#include <string_view>

namespace pv2::testing {

inline ProcedureId id_in(std::string_view key) {
  ProcedureId id;
  for (std::size_t i = 0; i < 8 && i < key.size(); ++i) {
    id.value = id.value << 8 | static_cast<unsigned char>(key[i]);
  }
  return id;
}

}  // namespace pv2::testing
