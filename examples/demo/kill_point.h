// SPDX-License-Identifier: Apache-2.0
//
// KillPoint: the moment at which the demo ends the master's process with SIGKILL. It is written as
// text, so that a failed round can be run again: a step ("WRITE_FS_LAYOUT": in the middle of its
// work), a number ("17": at the 17th call of a procedure to the cluster), a time ("3500us": that
// long after the act has begun), "random" or "none".

#pragma once

#include <pv2/base/random.h>
#include <pv2/base/status.h>
#include <pv2/procedures/cluster_call.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace demo {

struct KillPoint {
  enum class Kind : std::uint8_t { kNone, kStep, kMoment, kTime, kRandom };
  Kind kind = Kind::kNone;
  std::string step;          ///< kStep.
  std::uint64_t number = 0;  ///< kMoment: counted from 1. kTime: microseconds.
};

/// Which of the two procedures of the story is meant.
enum class Act : std::uint8_t { kCreateTable = 0, kServerCrash = 1 };

pv2::Result<KillPoint> parse_kill_point(std::string_view text);
[[nodiscard]] std::string to_string(const KillPoint& point);
/// The procedure to which a step belongs; CreateTable for everything that is not a step.
[[nodiscard]] Act act_of(const KillPoint& point);
/// A moment or a time that is likely to lie within the act.
[[nodiscard]] KillPoint random_kill_point(Act act, pv2::Random& random);
/// The names that parse_kill_point() takes as steps, for the usage text.
[[nodiscard]] std::string known_steps();

/// Lives in the master's process and watches its calls. arm() is called by handlers of signals; the
/// rest is thread-safe, as a ClusterProbe has to be.
class KillSwitch {
 public:
  KillSwitch(KillPoint in_create, KillPoint in_crash)
      : points_{std::move(in_create), std::move(in_crash)} {}
  /// From now on the kill point of this act counts, and no other.
  void arm(Act act) noexcept;
  /// If this is the moment, prints on stdout what was going on, and ends the process.
  void pass(const pv2::ClusterMoment& moment);

 private:
  const std::array<KillPoint, 2> points_;  // by Act
  std::atomic<int> act_{-1};
  // Several threads report moments; each may report the one that counts.
  std::atomic<std::uint64_t> passed_{0};
  std::atomic<std::uint64_t> of_the_step_{0};
};

}  // namespace demo
