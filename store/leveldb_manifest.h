// SPDX-License-Identifier: Apache-2.0
//
// What LevelDB's MANIFEST says: which tables and logs hold the rows. Read without opening the
// database, so that a store can be refused before a single byte of it has changed.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/base/status.h"

namespace pv2 {

/// A file of LevelDB's without its end, as LevelDB is to see it. A value.
struct ShownFile {
  std::string file;
  std::string bytes;
  std::string why;  ///< "a wrong checksum at byte 4711 of 5000".
};

/// The sum of a MANIFEST's records. A value.
struct Manifest {
  std::map<std::uint64_t, std::uint64_t> tables;  ///< Number -> size in bytes, of every live table.
  std::uint64_t log_number = 0;                   ///< Logs from this number on are live,
  std::uint64_t previous_log_number = 0;          ///< and so is this one, if it is not 0.
  std::uint64_t last_sequence = 0;  ///< LevelDB's own count of operations when it was written.
  std::string file;                 ///< Its name.
  std::optional<ShownFile> shown;   ///< Without the end that a power cut has left in zeros.
  std::uint64_t next_file = 0;      ///< Files that existed then have lower numbers. Never 0 in a
                                    ///< whole MANIFEST: its first records say it.
};

/// Adds up the records; kCorruption when one cannot be understood.
Result<Manifest> read_manifest(const std::vector<std::string>& records);

}  // namespace pv2
