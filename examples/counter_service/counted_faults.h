// SPDX-License-Identifier: Apache-2.0
//
// CountedFaults: random faults, and how many calls and replies met one. The proxy's own counters
// know frames; this knows what a person asks: how many calls were lost.

#pragma once

#include <pv2/rpc/random_faults.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace counter {

/// How often the network of a campaign does what, from 0 to 1.
struct LossRates {
  double calls_lost = 0.20;
  double replies_lost = 0.20;
  double repeated = 0.05;  ///< Calls and replies that come twice.
};

/// Thread-safe.
class CountedFaults final : public pv2::FaultPlan {
 public:
  /// kInvalidArgument: a rate is none.
  [[nodiscard]] static pv2::Result<std::shared_ptr<CountedFaults>> create(const LossRates& rates,
                                                                          std::uint64_t seed);
  [[nodiscard]] pv2::Fate fate(const pv2::PassingFrame& frame) override;

  /// Of one kind of frame.
  struct Count {
    std::atomic<std::uint64_t> sent{0};  // relaxed: numbers for people
    std::atomic<std::uint64_t> lost{0};
    std::atomic<std::uint64_t> repeated{0};
  };
  [[nodiscard]] const Count& calls() const noexcept { return calls_; }
  [[nodiscard]] const Count& replies() const noexcept { return replies_; }

 private:
  explicit CountedFaults(std::unique_ptr<pv2::RandomFaults> faults) : faults_(std::move(faults)) {}
  std::unique_ptr<pv2::RandomFaults> faults_;
  Count calls_;
  Count replies_;
};

}  // namespace counter
