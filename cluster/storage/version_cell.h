// SPDX-License-Identifier: Apache-2.0
//
// VersionCell: which edit of each other cluster a cell has seen last. It is a cell of the hidden
// space kVersions with the name of the cell that it is about, and is written in the same log entry
// as the edit. So it follows the data: into store files, recovery, moves and daughters.
//
// Why that makes the copy right: another cluster orders the edits of a cell by their versions
// (cell.h, EditVersion). An edit has an effect here only if its version is above that of the last
// one from the same sender, and the comparison and the effect are one write of the region. So
// however often and in whichever order edits come, the cell has that of the greatest version; when
// all have come, that is the sender's newest. A deletion keeps its version too: otherwise a late
// copy of an older put would bring the cell back.
//
// What it costs: one small cell for each replicated cell, also for one that is deleted, as long as
// the family is there. Nobody can say when the last copy of an old edit has come.
//
// A write of a client here does not change the version: it stays until the sender's next edit of
// that cell comes.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "pv2/cluster/cell.h"

namespace pv2::cluster {

/// A value.
struct VersionCell {
  std::map<std::string, EditVersion> last;  ///< By the id of the sender.

  /// Notes an edit. False: it is not newer than what the cell has seen.
  bool advance(const std::string& sender, const EditVersion& version);

  friend bool operator==(const VersionCell&, const VersionCell&) = default;
};

/// The value of the stored cell.
[[nodiscard]] std::string encode_versions(VersionCell versions);
/// No value: these are not the bytes of a version cell.
[[nodiscard]] std::optional<VersionCell> decode_versions(std::string_view value);

}  // namespace pv2::cluster
