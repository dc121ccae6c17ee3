// SPDX-License-Identifier: Apache-2.0
//
// Gives up what a damaged store has behind the damage: the one place that throws acknowledged bytes
// away, and only because an operator asked. It first finds out, by reading only, what would be
// left. Then it copies the damaged files, and lets the store take over what is left. So a crash at
// any moment loses nothing, and the salvage can be repeated.

#pragma once

#include <string>
#include <vector>

#include "leveldb_directory.h"
#include "log/log_recovery.h"
#include "pv2/base/ids.h"
#include "pv2/base/status.h"

namespace pv2 {

/// What a salvage leaves out of LevelDB's files. A value.
struct SalvagePlan {
  std::vector<ShownFile> shown;       ///< The files that will be seen without their ends.
  std::vector<std::string> given_up;  ///< Those of them that lose something: logs.
  std::string what;                   ///< "000005.log was cut at byte 4711 (a wrong checksum ...)".
};

/// What was done. A value.
struct SalvageReport {
  bool changed = false;
  std::string copies;  ///< The directory with the damaged files as they were.
  std::string what;    ///< In words.
};

/// Reads only. kNotSupported when something else is damaged than the end of the logs.
Result<SalvagePlan> plan_salvage(const LevelDbDirectory& directory, bool has_step_log);

/// Copies the logs that lose something, and notes that in `done`. The caller of this and of the
/// following holds the store's lock.
Status copy_logs(const LevelDbDirectory& directory, const SalvagePlan& plan, SalvageReport& done);

/// Copies the files of a step log that is damaged, and notes that in `cut`. What is behind the
/// damage is given up when the store is taken over. The caller holds the store's lock.
Status give_up_damaged_log(const LevelDbDirectory& directory, const RecoveredLog& log,
                           SalvageReport& done);

/// Sets PV2-DURABLE to `last` if it names a later commit or is damaged, and notes that in `done`.
Status give_up_later_commits(const LevelDbDirectory& directory, CommitSequence last,
                             SalvageReport& done);

}  // namespace pv2
