// SPDX-License-Identifier: Apache-2.0
//
// RandomFaults: a generator of its own for each frame, seeded by the frame's place, from which
// always the same draws are made in the same order. So one rate does not change what another one
// does.

#include "pv2/rpc/random_faults.h"

#include <pv2/base/random.h>

#include <utility>

namespace pv2 {
namespace {

constexpr Duration kUnit{1};

// False also for what is no number.
bool is_rate(double rate) { return rate >= 0 && rate <= 1; }

bool are_rates(const FaultRates& rates) {
  return is_rate(rates.drop) && is_rate(rates.duplicate) && is_rate(rates.delay) &&
         is_rate(rates.reorder) && is_rate(rates.cut) && is_rate(rates.half_open);
}

bool is_longest_delay(Duration time) { return time >= kUnit && time <= Fate::kTimeMax; }

bool is_upkeep(FrameKind kind) {
  switch (kind) {
    case FrameKind::kHello:
    case FrameKind::kWelcome:
    case FrameKind::kPing:
    case FrameKind::kPong:
    case FrameKind::kGoAway:
      return true;
    case FrameKind::kCall:
    case FrameKind::kReply:
    case FrameKind::kNote:
    case FrameKind::kCancel:
      return false;
  }
  return false;
}

/// The generator of one frame. Each number goes through the generator, so that near places have
/// nothing in common.
Random generator_of(std::uint64_t seed, const PassingFrame& frame) {
  std::uint64_t mixed = Random(seed).next();
  mixed = Random(mixed ^ frame.connection).next();
  mixed = Random(mixed ^ static_cast<std::uint64_t>(frame.direction)).next();
  mixed = Random(mixed ^ frame.index).next();
  return Random(mixed);
}

bool happens(Random& random, double rate) {
  // 53 bits are what a double holds; the result is below 1.
  return static_cast<double>(random.next() >> 11U) * 0x1p-53 < rate;
}

Duration up_to(Random& random, Duration longest) {
  return kUnit + Duration(random.below(static_cast<std::uint64_t>(longest.count())));
}

}  // namespace

RandomFaults::RandomFaults(RandomFaultsOptions options)
    : options_(options), to_server_(options.to_server), to_client_(options.to_client) {}

Result<std::unique_ptr<RandomFaults>> RandomFaults::create(RandomFaultsOptions options) {
  if (!are_rates(options.to_server) || !are_rates(options.to_client)) {
    return Status(StatusCode::kInvalidArgument, "random faults: a rate is not from 0 to 1");
  }
  if (!is_longest_delay(options.delay_max) || !is_longest_delay(options.hold_back_max)) {
    return Status(StatusCode::kInvalidArgument, "random faults: a time is not from 1 us to 1 hour");
  }
  if (options.behind_max == 0) {
    return Status(StatusCode::kInvalidArgument, "random faults: behind_max is 0");
  }
  return std::unique_ptr<RandomFaults>(new RandomFaults(options));
}

Status RandomFaults::set_rates(Direction direction, const FaultRates& rates) {
  if (!are_rates(rates)) {
    return {StatusCode::kInvalidArgument, "random faults: a rate is not from 0 to 1"};
  }
  MutexLock lock(rates_mutex_);
  (direction == Direction::kToServer ? to_server_ : to_client_) = rates;
  return {};
}

FaultRates RandomFaults::rates(Direction direction) const {
  MutexLock lock(rates_mutex_);
  return direction == Direction::kToServer ? to_server_ : to_client_;
}

Fate RandomFaults::fate(const PassingFrame& frame) {
  if (options_.spares == RandomFaultsOptions::Spares::kUpkeep && frame.kind &&
      is_upkeep(*frame.kind)) {
    return {};
  }
  const FaultRates rate = rates(frame.direction);
  Random random = generator_of(options_.seed, frame);
  const bool drop = happens(random, rate.drop);
  const bool duplicate = happens(random, rate.duplicate);
  const bool delay = happens(random, rate.delay);
  const bool reorder = happens(random, rate.reorder);
  const bool cut = happens(random, rate.cut);
  const bool half_open = happens(random, rate.half_open);
  const Duration delay_by = up_to(random, options_.delay_max);
  const auto behind = static_cast<std::uint32_t>(1 + random.below(options_.behind_max));
  const bool first_half = random.below(2) == 0;

  Fate fate;
  if (duplicate) fate.copies = 2;
  if (drop) fate.copies = 0;
  if (delay) fate.delay = delay_by;
  if (reorder) fate.behind = behind;
  fate.hold_back = options_.hold_back_max;
  if (cut) fate.cut = first_half ? Fate::Cut::kBefore : Fate::Cut::kAfter;
  if (half_open) fate.half_open = first_half ? Fate::HalfOpen::kDirection : Fate::HalfOpen::kBoth;
  return fate;
}

}  // namespace pv2
