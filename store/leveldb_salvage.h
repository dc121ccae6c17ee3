// SPDX-License-Identifier: Apache-2.0
//
// Gives up what a damaged store has behind the damage: the one place that throws acknowledged bytes
// away, and only because an operator asked. It first finds out, by reading only, what would be
// left. Then it copies the logs, and lets the store take over what is left. So a crash at any
// moment loses nothing, and the salvage can be repeated.
//
// If anything is given up, all logs are copied, and PV2-DURABLE with them: a log whose end is
// missing or damaged may look whole, so which of them has lost something is not always known. A
// salvage that fails before it has changed anything leaves no copies.

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
  std::vector<std::string> logs;      ///< All of LevelDB's logs that are in use.
  std::vector<ShownFile> shown;       ///< The files that will be seen without their ends.
  std::vector<std::string> given_up;  ///< Those of them that lose something: logs.
  std::string what;                   ///< "000005.log was cut at byte 4711 (a wrong checksum ...)".
};

/// What was done. A value.
struct SalvageReport {
  bool changed = false;
  std::string copies;  ///< The directory with the logs as they were. Empty: there are no copies.
  std::string what;    ///< In words.
};

/// Reads only. kNotSupported when something else is damaged than the end of the logs.
Result<SalvagePlan> plan_salvage(const LevelDbDirectory& directory, bool has_step_log);

/// Copies the logs, if `plan` cuts one of LevelDB's, or if the step log `log` is damaged, and notes
/// that in `done`. What is behind the damage is given up when the store is taken over. The caller
/// of this and of the following holds the store's lock.
Status give_up_damaged_ends(const LevelDbDirectory& directory, const SalvagePlan& plan,
                            const RecoveredLog& log, SalvageReport& done);

/// Sets PV2-DURABLE to the last commit of `log` if it names a later one or is damaged, and notes
/// that in `done`. The end of a log that is not there is then given up, or the one that is there:
/// so the logs are copied before, unless they already were. The first change to the store: if it
/// fails, the copies are removed.
Status give_up_later_commits(const LevelDbDirectory& directory, const SalvagePlan& plan,
                             const RecoveredLog& log, SalvageReport& done);

}  // namespace pv2
