// SPDX-License-Identifier: Apache-2.0
//
// A worker dates its step with the wall clock, which it reads anyway. The wall clock may jump, so
// an age is believed only between the bounds that our own looks, dated with the steady clock, give.

#include "stuck_detector.h"

#include <algorithm>
#include <string>
#include <utility>

namespace pv2 {
namespace {

// Looks per threshold: a stuck step is reported when it is at most a quarter older than that.
constexpr int kLooks = 4;

RunningProcedure info_of(const RunningStep& step, Duration age) {
  RunningProcedure info;
  info.id = step.id;
  info.type = step.type->name;
  info.step = step.step;
  if (const StepInfo* const row = step.type->find_step(step.step)) info.step_name = row->name;
  info.undo = step.undo;
  info.since = step.since;
  info.age = age;
  return info;
}

std::string seconds(Duration span) {
  const auto tenths = span.count() / 100'000;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace

std::vector<RunningProcedure> running_procedures(const EngineCore& core) {
  std::vector<RunningProcedure> all;
  const WallTime now = core.clock.wall_now();
  for (std::size_t worker = 0; worker < core.running.size(); ++worker) {
    const auto running = core.running.look(worker);
    if (!running) continue;
    all.push_back(info_of(*running, std::max(Duration::zero(), now - running->since)));
  }
  return all;
}

std::string in_words(const RunningProcedure& running) {
  return std::string(running.undo ? "the undoing of step " : "step ") + running.step_name +
         " of procedure " + std::to_string(running.id.value) + " (" + running.type +
         ") has been running for " + seconds(running.age);
}

StuckDetector::StuckDetector(EngineCore& core)
    : core_(core), seen_(core.running.size()), last_look_(core.clock.steady_now()) {}

std::optional<SteadyTime> StuckDetector::next_due() {
  if (core_.options.stuck_after <= Duration::zero()) return std::nullopt;
  return last_look_ + std::max(core_.options.stuck_after / kLooks, Duration(1));
}

std::size_t StuckDetector::fire(SteadyTime now) {
  const auto due = next_due();
  // The timers fire whenever a deadline of any procedure is near; a clock that a test moves is
  // looked at each time.
  if (!due || (now < *due && !core_.clock.is_manual())) return 0;
  const WallTime wall = core_.clock.wall_now();
  for (std::size_t worker = 0; worker < seen_.size(); ++worker) {
    const auto running = core_.running.look(worker);
    if (!running) continue;
    Seen& seen = seen_[worker];
    if (seen.number != running->number) {
      seen = {running->number, last_look_, now, false};
    }
    const Duration age =
        std::clamp(wall - running->since, now - seen.at_latest, now - seen.not_before);
    if (age < core_.options.stuck_after || seen.reported) continue;
    seen.reported = true;
    report(info_of(*running, age));
  }
  last_look_ = now;
  return 0;
}

void StuckDetector::report(RunningProcedure running) {
  log(core_.options.log, LogLevel::kWarning,
      in_words(running) + ", and stuck_after is " + seconds(core_.options.stuck_after) +
          "; it keeps a worker. Steps must not block: what takes time belongs into offload() or "
          "await()");
  if (!core_.options.on_stuck) return;
  core_.pool->post(
      [&core = core_, running = std::move(running)] { core.options.on_stuck(running); });
}

}  // namespace pv2
