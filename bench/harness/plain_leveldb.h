// SPDX-License-Identifier: Apache-2.0
//
// The same records without an engine: a stream that StoreProbe recorded, written straight to
// LevelDB by one thread that does nothing else. This is the limit of an engine on LevelDB, and the
// engine's processor time is compared with it.

#pragma once

#include <chrono>
#include <string>

#include "harness/store_probe.h"

namespace pv2::bench {

/// Cost and speed of the plain writes. A value.
struct PlainWrites {
  double steps_per_second = 0;
  double syncs_per_second = 0;
  double cpu_us_per_step = 0;  ///< Of the whole process, LevelDB's own thread included.
  double other_cores = 0;
};

/// Writes `stream` to a new database in `folder` with the options of LevelDbProcedureStore and the
/// rows that it would write: one synced write for each `requests_per_sync` requests, or, for 0, for
/// the number that had one sync when the stream was recorded. Stops after `limit`.
PlainWrites write_plain(const RecordedStream& stream, const std::string& folder,
                        std::size_t requests_per_sync, std::chrono::milliseconds limit);

}  // namespace pv2::bench
