// SPDX-License-Identifier: Apache-2.0
//
// Reads a file in LevelDB's log format (its write-ahead logs and its MANIFEST) without changing it,
// and says how it ends. LevelDB itself takes a damaged length at the end of a file for a write that
// a crash cut short and drops it in silence; a store that has acknowledged that record must not, so
// this reader tells the two apart.
//
//     file   = 32 KiB blocks;  block = fragments, then fewer than 7 zero bytes
//     fragment = 4 bytes masked CRC-32C of type and data, 2 bytes length, 1 byte type (1 full, 2
//     first, 3 middle, 4 last), data

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pv2 {

/// What a log file holds. A value.
struct LogFileContents {
  enum class End {
    kClean,  ///< The last record is complete.
    kTorn,   ///< The last write is incomplete, as a crash leaves it; whatever was synced before is
             ///< there.
    kUnwritten,  ///< The last record is not there, or without some of its sectors, and zeros are in
                 ///< their place: the power went off when the new size of the file was on the disk,
                 ///< and the bytes were not. Whatever was synced before is there. LevelDB may
                 ///< refuse the zeros.
    kDamaged,    ///< Bytes are not what was written; what follows them cannot be trusted.
  };
  std::vector<std::string> records;  ///< The good records up to `good_bytes`.
  std::size_t good_bytes = 0;        ///< Where the last good record ends.
  End end = End::kClean;
  std::string problem;  ///< What was found at the end that is not clean, and at which byte.
};

/// Takes a whole file apart. Cannot fail: damage is part of the answer.
[[nodiscard]] LogFileContents read_log_file(std::string_view bytes);

}  // namespace pv2
