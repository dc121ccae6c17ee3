// SPDX-License-Identifier: Apache-2.0
//
// The same records without an engine: a stream that StoreProbe recorded, written straight to
// LevelDB by one thread with nothing else to do. It is the limit of an engine on LevelDB, and what
// the engine's processor time is compared with.

#pragma once

#include <chrono>
#include <string>

#include "harness/store_probe.h"

namespace pv2::bench {

/// Cost and speed of the plain writes. A value.
struct PlainWrites {
  double steps_per_second = 0;
  double syncs_per_second = 0;
  double cpu_us_per_step = 0;  ///< Of the whole process: LevelDB's own thread included.
  double other_cores = 0;
};

/// Writes `stream` to a new database in `folder` with the options of LevelDbProcedureStore and the
/// rows that it would write: one synced write for each `requests_per_sync` requests, or for as many
/// as went with one sync when it was recorded (0). Stops after `limit`.
PlainWrites write_plain(const RecordedStream& stream, const std::string& folder,
                        std::size_t requests_per_sync, std::chrono::milliseconds limit);

}  // namespace pv2::bench
