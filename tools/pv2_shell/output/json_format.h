// SPDX-License-Identifier: Apache-2.0
//
// An answer for programs: one JSON object on one line, of printable ASCII only. It is written with
// the project's own JsonWriter: the shell reads no JSON, so a library for it would only be another
// thing to install. docs/shell.md has the members; they are added to, and never changed.

#pragma once

#include <string>
#include <string_view>

#include "output/answer.h"

namespace pv2::shell {

/// `statement`: the line that was answered. The result has no newline.
[[nodiscard]] std::string as_json(std::string_view statement, const Answer& answer);

}  // namespace pv2::shell
