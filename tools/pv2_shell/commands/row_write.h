// SPDX-License-Identifier: Apache-2.0
//
// Writes rows for a statement: under a nonce and an end that were chosen before the first send, and
// that the answer tells if the outcome stays unknown.

#pragma once

#include <pv2/cluster/cell.h>

#include <string>
#include <utility>
#include <vector>

#include "commands/call.h"
#include "session/shell.h"

namespace pv2::shell {

/// The outcome of the write. `result`: what the mutations answered; set if it was done.
struct Written {
  Answer answer;
  cluster::WriteResult result{};
};
Written write_rows(Shell& shell, const Call& call, const TableName& table,
                   std::vector<cluster::Mutation> mutations);

/// 'f:q' as its family and its qualifier.
[[nodiscard]] std::pair<std::string, std::string> parse_column(const std::string& text);

}  // namespace pv2::shell
