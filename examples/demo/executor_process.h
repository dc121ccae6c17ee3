// SPDX-License-Identifier: Apache-2.0
//
// The executor as a process of its own: opens the store and the cluster, resumes the procedures
// that it finds, and takes commands, one per line, on stdin until that is closed. This is the
// process that the demo kills.
//
//     create <group> <nonce> <table> <regions> <family>,...
//          -> accepted <id> new|replayed, or refused <why>
//     crash <server>
//          -> accepted <id> new|replayed, or refused <why>
//     wait <id>
//          -> ended <id> <state> <result or why>
//
// Before the first command it prints, for each root that it finds, "found <id> <type> <step>", then
// "ready".

#pragma once

#include <string>

#include "kill_point.h"

namespace demo {

/// Runs until stdin ends or the kill point is reached; returns the exit code of the process.
int run_executor(const std::string& directory, const KillPoint& kill_point);

}  // namespace demo
