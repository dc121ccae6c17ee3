// SPDX-License-Identifier: Apache-2.0
//
// Percentiles and medians of what was measured.

#include "harness/samples.h"

#include <algorithm>

namespace pv2::bench {

void Samples::add_all(const Samples& other) {
  samples_.insert(samples_.end(), other.samples_.begin(), other.samples_.end());
  sorted_ = false;
}

double Samples::percentile(double percent) {
  if (samples_.empty()) return 0;
  if (!sorted_) {
    std::sort(samples_.begin(), samples_.end(),
              [](const Sample& a, const Sample& b) { return a.microseconds < b.microseconds; });
    sorted_ = true;
  }
  double total = 0;
  for (const Sample& sample : samples_) total += sample.weight;
  double covered = 0;
  for (const Sample& sample : samples_) {
    covered += sample.weight;
    if (covered >= total * percent / 100) return sample.microseconds;
  }
  return samples_.back().microseconds;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace pv2::bench
