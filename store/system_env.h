// SPDX-License-Identifier: Apache-2.0
//
// system_env(): LevelDB's own Env, except that a list of names which the system broke off is a
// failure. LevelDB's Env answers OK with the names that came before the error, and the others would
// seem to be absent.

#pragma once

#include <leveldb/env.h>

namespace pv2 {

/// Lives until the process ends. Thread-safe.
leveldb::Env& system_env();

}  // namespace pv2
