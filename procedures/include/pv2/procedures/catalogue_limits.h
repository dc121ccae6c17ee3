// SPDX-License-Identifier: Apache-2.0
//
// What the table that holds the catalogue takes: how long a key may be, and how much one write may
// have. A procedure checks in its first step what it is going to write, because a write that is
// refused for its size is refused for ever. The tables of users have the same limits
// (pv2/cluster/cell.h), so a region has no key that no row can have.

#pragma once

#include <pv2/base/status.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "pv2/procedures/catalogue.h"

namespace pv2 {

/// The key of a row, so also the first key and the end of a region.
inline constexpr std::size_t kRowKeyBytesMax = 4096;
/// The name of a column family. It is in the key of every stored cell.
inline constexpr std::size_t kFamilyNameBytesMax = 64;
/// The families of one table. A descriptor with all of them takes less than a tenth of a value.
inline constexpr std::size_t kFamiliesMax = 1024;
/// The value of one cell.
inline constexpr std::size_t kCellValueBytesMax = std::size_t{1} << 20;
/// One write: the rows of a table with as many regions as even_split_keys() can make.
inline constexpr std::size_t kRowsPerWriteMax = 65'536;
inline constexpr std::size_t kBytesPerWriteMax = std::size_t{8} << 20;

/// kInvalidArgument: the catalogue's table would refuse the write, because a row of it or all of it
/// is too large. Counts a few bytes more than there are, and never fewer of a row that is written.
[[nodiscard]] Status check_size(const CatalogueWrite& write);

/// kInvalidArgument: a row cannot have such a key, so a region cannot begin with it. `whose` is for
/// the message: "table default:t".
[[nodiscard]] Status check_row_key(std::string_view whose, std::string_view key);

}  // namespace pv2
