// SPDX-License-Identifier: Apache-2.0
//
// The grammar of the shell:
//
//     statement := [ word [ argument { ',' argument } ] ] [ '#' anything ]
//     argument  := value | word '=>' value
//     value     := text | number | word | list | map
//     list      := '[' [ value { ',' value } ] ']'
//     map       := '{' [ word '=>' value { ',' word '=>' value } ] '}'
//     text      := in '...' or "...", with \n \t \r \\ \' \" and \xNN for any byte
//
// A line is a statement. Any bytes are a legal input: what is no statement is kInvalidArgument,
// with the column, what is wrong there, and what would be right. Time and memory are linear in the
// line; nesting and the length of a line have limits.

#pragma once

#include <pv2/base/status.h>

#include <cstddef>
#include <string_view>

#include "language/statement.h"

namespace pv2::shell {

/// Room for the largest value of a cell with every byte written as \xNN.
inline constexpr std::size_t kLineBytesMax = std::size_t{5} << 20;
/// Deeper than anything that a command takes; it bounds the recursion.
inline constexpr std::size_t kNestingMax = 16;
/// Of one map, or of the options of one statement; it bounds the search for repeated ones.
inline constexpr std::size_t kKeysMax = 64;

/// Blank lines and comments are empty statements.
[[nodiscard]] Result<Statement> parse(std::string_view line);

}  // namespace pv2::shell
