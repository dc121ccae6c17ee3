// SPDX-License-Identifier: Apache-2.0
//
// LogPosition: a place in the row of logs of one server: a log's number and an offset in its file.
// A plain value with numbered fields, which are persisted.

#pragma once

#include <compare>
#include <cstdint>

namespace pv2::cluster {

struct LogPosition {
  std::uint64_t log = 1;  ///< 3: the user log "u3".
  std::uint64_t offset = 0;

  void fields(auto& f) {
    f(1, "log", log);
    f(2, "offset", offset);
  }
  friend auto operator<=>(const LogPosition&, const LogPosition&) = default;
};

}  // namespace pv2::cluster
