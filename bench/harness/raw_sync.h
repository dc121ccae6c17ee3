// SPDX-License-Identifier: Apache-2.0
//
// RawSync: the unit in which everything durable is measured. One thread writes a record of 256
// bytes to a file that was filled with zeros before (so that neither its size nor its blocks
// change), then calls fdatasync, one record after the other. Measured next to every durable figure,
// because the speed of a disk changes from one second to the next.

#pragma once

#include <chrono>
#include <string>

#include "harness/samples.h"

namespace pv2::bench {

/// What one measurement found. A value.
struct RawSyncs {
  double per_second = 0;
  double p50_us = 0;
  double p99_us = 0;
};

/// Owned by one thread.
class RawSync {
 public:
  /// Makes the file at `path` and fills it.
  explicit RawSync(const std::string& path);
  ~RawSync();
  RawSync(const RawSync&) = delete;
  RawSync& operator=(const RawSync&) = delete;

  RawSyncs measure(std::chrono::milliseconds window);

 private:
  int file_ = -1;
  off_t next_ = 0;
};

}  // namespace pv2::bench
