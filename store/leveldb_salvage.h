// SPDX-License-Identifier: Apache-2.0
//
// Cuts the damaged end off a store's write-ahead logs: the one place that throws acknowledged bytes
// away, and only because an operator asked. It copies first and cuts second, so a crash in between
// loses nothing and the salvage can be repeated.

#pragma once

#include <string>

#include "leveldb_directory.h"
#include "log/log_recovery.h"
#include "pv2/base/ids.h"
#include "pv2/base/status.h"

namespace pv2 {

/// What was done to the logs. A value.
struct LogCut {
  bool changed = false;
  std::string copies;  ///< The directory with the logs as they were.
  std::string what;    ///< "000005.log was cut at byte 4711 (a wrong checksum at ...)".
};

/// Takes the store's lock while it works. kNotSupported when the damage is not at the end of the
/// logs.
Result<LogCut> cut_damaged_logs(const LevelDbDirectory& directory);

/// Copies the files of a step log that is damaged, and notes that in `cut`. What is behind the
/// damage is given up when the store is taken over. The caller holds the store's lock.
Status give_up_damaged_log(const LevelDbDirectory& directory, const RecoveredLog& log, LogCut& cut);

/// Sets PV2-DURABLE to `last` if it names a later commit or is damaged, and notes that in `cut`.
/// The caller holds the store's lock.
Status give_up_later_commits(const LevelDbDirectory& directory, CommitSequence last, LogCut& cut);

}  // namespace pv2
