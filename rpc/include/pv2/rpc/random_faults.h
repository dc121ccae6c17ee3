// SPDX-License-Identifier: Apache-2.0
//
// RandomFaults: a plan of rates and a seed. What happens to a frame depends on nothing but the
// seed, the rates, and the frame's place: its connection, direction and index. So a history repeats
// as far as the frames come in the same order within each connection, whatever the threads do.

#pragma once

#include <pv2/base/mutex.h>

#include <memory>

#include "pv2/rpc/fault_plan.h"

namespace pv2 {

/// These rates say how often a frame has which fate. They are probabilities from 0 to 1, each by
/// itself.
struct FaultRates {
  double drop = 0;
  double duplicate = 0;
  double delay = 0;
  double reorder = 0;
  double cut = 0;        ///< One half of the cuts are before the frame, one half after it.
  double half_open = 0;  ///< One half are in its direction, one half in both.
};

struct RandomFaultsOptions {
  std::uint64_t seed = 1;
  FaultRates to_server{};
  FaultRates to_client{};
  /// A delay lasts from 1 us to this.
  Duration delay_max = std::chrono::milliseconds(100);
  /// The proxy holds a frame back until some later ones have passed, from 1 to this number, but not
  /// longer than hold_back_max.
  std::uint32_t behind_max = 3;
  Duration hold_back_max = std::chrono::milliseconds(100);

  enum class Spares : std::uint8_t {
    /// Hello, welcome, ping, pong and go-away are passed on, so that the faults meet operations and
    /// the connection lives long enough to carry some.
    kUpkeep,
    kNothing,
  };
  Spares spares = Spares::kUpkeep;
};

/// Thread-safe.
class RandomFaults final : public FaultPlan {
 public:
  /// Makes a plan. kInvalidArgument: a rate is not from 0 to 1 (or is no number), behind_max is 0,
  /// or a time is not from 1 us to Fate::kTimeMax.
  [[nodiscard]] static Result<std::unique_ptr<RandomFaults>> create(RandomFaultsOptions options);

  /// Sets the rates of the frames that come from now on. kInvalidArgument changes nothing.
  Status set_rates(Direction direction, const FaultRates& rates) PV2_EXCLUDES(rates_mutex_);

  [[nodiscard]] Fate fate(const PassingFrame& frame) override PV2_EXCLUDES(rates_mutex_);

 private:
  explicit RandomFaults(RandomFaultsOptions options);
  [[nodiscard]] FaultRates rates(Direction direction) const PV2_EXCLUDES(rates_mutex_);

  const RandomFaultsOptions options_;  // its rates are those of the beginning
  mutable Mutex rates_mutex_;
  FaultRates to_server_ PV2_GUARDED_BY(rates_mutex_);
  FaultRates to_client_ PV2_GUARDED_BY(rates_mutex_);
};

}  // namespace pv2
