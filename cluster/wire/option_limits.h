// SPDX-License-Identifier: Apache-2.0
//
// The limits of what an operator gives a process of the cluster. Checked before the process makes
// anything: a pause of 0 would keep a processor busy, and a time of years would overflow.

#pragma once

#include <pv2/base/status.h>

#include "pv2/cluster/master.h"
#include "pv2/cluster/region_server.h"

namespace pv2::cluster {

inline constexpr Duration kOptionTimeMin = std::chrono::milliseconds(1);
inline constexpr Duration kOptionTimeMax = std::chrono::hours(24 * 366);
inline constexpr std::size_t kMemoryMax = std::size_t{1} << 40;

/// kInvalidArgument names the option that is wrong, and what it may be.
Status check_options(const MasterOptions& options);
Status check_options(const RegionServerOptions& options);

}  // namespace pv2::cluster
