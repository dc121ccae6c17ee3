// SPDX-License-Identifier: Apache-2.0
//
// Percentiles of what was measured. "The p99" is the smallest sample that 99 % of the samples do
// not exceed; without samples it is 0.

#pragma once

#include <cstdint>
#include <vector>

namespace pv2::bench {

/// `weight` events that took `microseconds` each.
struct Sample {
  float microseconds = 0;
  std::uint32_t weight = 1;
};

/// Collects times and reports their distribution. Owned by one thread.
class Samples {
 public:
  void add(double microseconds, std::uint32_t weight = 1) {
    samples_.push_back({static_cast<float>(microseconds), weight});
    sorted_ = false;
  }
  void add_all(const Samples& other);
  void clear() { samples_.clear(); }
  [[nodiscard]] std::size_t size() const noexcept { return samples_.size(); }

  /// `percent` from 0 to 100.
  [[nodiscard]] double percentile(double percent);

 private:
  std::vector<Sample> samples_;
  bool sorted_ = false;
};

/// The middle of `values`; the mean of the two middle ones if their number is even.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace pv2::bench
