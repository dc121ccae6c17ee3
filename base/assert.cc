// SPDX-License-Identifier: Apache-2.0
//
// The end of a process whose invariants do not hold: one line on stderr, then abort().

#include "pv2/base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace pv2::internal {

void assertion_failed(const char* expression, const char* message, const char* file,
                      int line) noexcept {
  std::fprintf(stderr, "pv2: invariant broken: %s [%s] at %s:%d\n", message, expression, file,
               line);
  std::fflush(stderr);
  std::abort();
}

}  // namespace pv2::internal
