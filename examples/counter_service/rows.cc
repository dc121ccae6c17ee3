// SPDX-License-Identifier: Apache-2.0
//
// Keys of rows, put together from a prefix and a name, which has no '/'.

#include "rows.h"

#include <fmt/format.h>

namespace counter {

std::string counter_row(std::string_view name) { return fmt::format("{}{}", kCounterRows, name); }
std::string piece_row(std::string_view text, std::uint64_t begins) {
  return fmt::format("{}{}/{:020}", kTextRows, text, begins);
}
std::string piece_rows(std::string_view text) { return fmt::format("{}{}/", kTextRows, text); }
std::string size_row(std::string_view text) { return fmt::format("text-size/{}", text); }

}  // namespace counter
