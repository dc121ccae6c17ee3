// SPDX-License-Identifier: Apache-2.0
//
// ReopenProgress: how far the undo of a split or merge has come in opening again what the operation
// had closed. It is durable with the procedure, and decides nothing by itself.

#pragma once

#include <cstdint>
#include <string>

namespace pv2 {

/// What an undo keeps over its runs: fields of its procedure. A plain value.
struct ReopenProgress {
  std::uint32_t round = 0;      ///< Grows whenever a server could not open a region.
  std::string reason;           ///< What the server said.
  std::uint32_t failed_in = 0;  ///< The attempt of the undo in which that was.
};

}  // namespace pv2
