// SPDX-License-Identifier: Apache-2.0
//
// NewThreadsLimit lets a test run as on a machine that can start only a few more threads.

#pragma once

#include <pv2/base/thread.h>

#include <cstddef>
#include <optional>

namespace pv2::testing {

/// Applies to the whole process, as long as it exists.
class NewThreadsLimit {
 public:
  explicit NewThreadsLimit(std::size_t left) { limit_new_threads_for_tests(left); }
  ~NewThreadsLimit() { limit_new_threads_for_tests(std::nullopt); }
  NewThreadsLimit(const NewThreadsLimit&) = delete;
  NewThreadsLimit& operator=(const NewThreadsLimit&) = delete;
};

}  // namespace pv2::testing
