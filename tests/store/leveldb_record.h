// SPDX-License-Identifier: Apache-2.0
//
// Records of LevelDB's log format, for tests that write or take apart a log or a MANIFEST.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "little_endian.h"
#include "pv2/base/crc32c.h"

namespace pv2::testing {

/// A record of one fragment. It has to lie within one block of 32 KiB.
inline std::string record_of(std::string_view data) {
  std::string checked(1, '\1');
  checked.append(data);
  const std::uint32_t crc = crc32c(checked);
  std::string bytes;
  append_fixed32(bytes, ((crc >> 15) | (crc << 17)) + 0xa282ead8U);
  bytes.push_back(static_cast<char>(data.size() & 0xff));
  bytes.push_back(static_cast<char>(data.size() >> 8));
  return bytes + checked;
}

}  // namespace pv2::testing
