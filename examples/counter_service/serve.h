// SPDX-License-Identifier: Apache-2.0
//
// The process of the service: opens the store, listens, and serves until its stdin ends. It prints
//
//     listening <address>
//     counts <calls that reached a handler> <operations that were run>     a hundred times a second
//
// and, to stderr, why it ends if its store fails.

#pragma once

#include <string>

#include "service.h"

namespace counter {

struct ServeOptions {
  std::string store;
  std::string listen = "127.0.0.1:0";
  Dedup dedup = Dedup::kOn;
};

/// Returns the exit code of the process: 0, or 1 if it cannot serve.
int serve(const ServeOptions& options);

}  // namespace counter
