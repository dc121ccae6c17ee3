// SPDX-License-Identifier: Apache-2.0
//
// How bytes become text that is safe to print, and back. What a row holds is anybody's: printed as
// it is, it could move the cursor, rename the window or fake an answer. So everything that is
// printed went through one of these functions, whose results are printable ASCII and nothing else.

#pragma once

#include <string>
#include <string_view>

namespace pv2::shell {

/// Printable ASCII stays, except that a backslash is doubled; a newline is \n, a tab \t, every
/// other byte \xNN. The language reads it back as the same bytes.
[[nodiscard]] std::string escape_bytes(std::string_view bytes);

/// For messages: printable ASCII stays, backslashes too; every other byte becomes \xNN.
[[nodiscard]] std::string printable(std::string_view text);

/// The text as the language writes it: 'it\'s'.
[[nodiscard]] std::string in_quotes(std::string_view text);

}  // namespace pv2::shell
