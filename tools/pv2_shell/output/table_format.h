// SPDX-License-Identifier: Apache-2.0
//
// An answer for people: rows in columns, then sentences, then what went wrong. Printable ASCII
// only.

#pragma once

#include <string>

#include "output/answer.h"

namespace pv2::shell {

/// Lines, each with its newline; empty if the answer has nothing to say.
[[nodiscard]] std::string as_table(const Answer& answer);

/// One field as text; empty if there is none.
[[nodiscard]] std::string as_text(const Field& field);

}  // namespace pv2::shell
