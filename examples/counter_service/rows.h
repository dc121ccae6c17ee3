// SPDX-License-Identifier: Apache-2.0
//
// The keys of the rows of counters and texts, the same in each store: a row for each counter, with
// its value in decimal; a row for each piece of a text, named by where the piece begins.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace counter {

inline constexpr std::string_view kCounterRows = "counter/";
inline constexpr std::string_view kTextRows = "text/";

[[nodiscard]] std::string counter_row(std::string_view name);
/// The order of the keys is that of the pieces.
[[nodiscard]] std::string piece_row(std::string_view text, std::uint64_t begins);
/// The beginning of the keys of all pieces of a text.
[[nodiscard]] std::string piece_rows(std::string_view text);
/// How long a text is; only the procedures need it.
[[nodiscard]] std::string size_row(std::string_view text);

}  // namespace counter
