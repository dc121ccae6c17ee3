// SPDX-License-Identifier: Apache-2.0
//
// The master of the demo: a master that ends its own process at a kill point. Nothing else about it
// differs from the one that pv2-shell starts.

#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kill_point.h"

namespace demo {

/// What ClusterProcesses::start_master() has to add.
[[nodiscard]] std::vector<std::string> arguments_of(const KillPoint& in_create,
                                                    const KillPoint& in_crash);
/// The signals that arm its kill points.
[[nodiscard]] int signal_of(Act act);

/// If the arguments say that this run is the master of a demo, is that until it ends, and returns
/// its exit code.
[[nodiscard]] std::optional<int> run_demo_master(std::span<char* const> arguments);

}  // namespace demo
