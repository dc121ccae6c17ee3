// SPDX-License-Identifier: Apache-2.0
//
// NoDescriptors: a process whose descriptors are used up. Sockets, files, pipes and the queues of
// events that asio makes need one each.

#pragma once

#include <sys/resource.h>

// The sanitizer opens a pipe to look at an object, and calls an exception invalid when it cannot.
#if defined(__has_feature)
#if __has_feature(undefined_behavior_sanitizer)
#define PV2_SANITIZER_NEEDS_DESCRIPTORS
#endif
#endif

namespace pv2::testing {

/// No descriptor can be opened while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 3;
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace pv2::testing
