// SPDX-License-Identifier: Apache-2.0
//
// How the messages of this layer name a nonce: "nonce 7/42", its group and its value.

#pragma once

#include <pv2/base/ids.h>

#include <string>

namespace pv2 {

[[nodiscard]] inline std::string name_of(const Nonce& nonce) {
  return "nonce " + std::to_string(nonce.group) + "/" + std::to_string(nonce.value);
}

}  // namespace pv2
