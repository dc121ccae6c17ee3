// SPDX-License-Identifier: Apache-2.0
//
// The executor as a process of its own: opens the store and the cluster, goes on with what it
// finds, and takes commands in lines on stdin until that is closed. This is the process that the
// demo kills.
//
//     create <group> <nonce> <table> <regions> <family>,...   accepted <id> new|replayed | refused
//     <why> crash <server>                                          accepted <id> new|replayed |
//     refused <why> wait <id>                                               ended <id> <state>
//     <result or why>
//
// Before the first command it says, for each root that it finds, "found <id> <type> <step>", then
// "ready".

#pragma once

#include <string>

#include "kill_point.h"

namespace demo {

/// Runs until stdin ends or the kill point is reached; returns the exit code of the process.
int run_executor(const std::string& directory, const KillPoint& kill_point);

}  // namespace demo
