// SPDX-License-Identifier: Apache-2.0
//
// A worker dates its step with the wall clock, which it reads anyway. The wall clock may jump, so
// the age is clamped between two bounds from the steady clock: the detector's last look before the
// step began, and its first look after that.

#include "watch/stuck_detector.h"

#include <algorithm>
#include <string>
#include <utility>

#include "model/names.h"
#include "pv2/engine/executor_options.h"
#include "pv2/engine/procedure_registry.h"
#include "steps/offloads.h"

namespace pv2 {
namespace {

// Looks per `stuck_after`: a stuck step is reported when it is at most a quarter older than that.
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

RunningProcedure info_of(const PieceOfWork& piece, SteadyTime now) {
  RunningProcedure info;
  info.kind = RunningProcedure::Kind::kOffloaded;
  info.id = piece.id;
  info.type = piece.type->name;
  info.step = piece.step;
  if (const StepInfo* const row = piece.type->find_step(piece.step)) info.step_name = row->name;
  info.undo = piece.undo;
  info.since = piece.began_at;
  info.age = std::max(Duration::zero(), now - piece.began);
  if (const auto heartbeat = piece.work->last_heartbeat()) {
    info.heartbeat = std::max(Duration::zero(), now - *heartbeat);
  }
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
  const SteadyTime steady = core.clock.steady_now();
  for (const auto& piece : core.offloads->running()) all.push_back(info_of(*piece, steady));
  return all;
}

std::string in_words(const RunningProcedure& running) {
  const bool offloaded = running.kind == RunningProcedure::Kind::kOffloaded;
  std::string text = std::string(offloaded ? "work offloaded by " : "") +
                     (running.undo ? "the undoing of step " : "step ") + running.step_name +
                     " of " + name_of(running.id) + " (" + running.type +
                     ") has been running for " + seconds(running.age);
  if (running.heartbeat) text += ", its last heartbeat was " + seconds(*running.heartbeat) + " ago";
  return text;
}

StuckDetector::StuckDetector(EngineCore& core)
    : core_(core), seen_(core.running.size()), last_look_(core.clock.steady_now()) {}

std::optional<SteadyTime> StuckDetector::next_due() {
  if (core_.options.stuck_after <= Duration::zero()) return std::nullopt;
  return last_look_ + std::max(core_.options.stuck_after / kLooks, Duration(1));
}

std::size_t StuckDetector::fire(SteadyTime now) {
  const auto due = next_due();
  // The timers fire whenever the deadline of any procedure is near. With a manual clock every
  // firing is a look.
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
  look_at_work(now);
  return 0;
}

// Offloaded work is dated with the steady clock, so its age needs no bounds. Each heartbeat
// restarts the age.
void StuckDetector::look_at_work(SteadyTime now) {
  for (const auto& piece : core_.offloads->running()) {
    const SteadyTime alive = piece->last_sign_of_life();
    if (now - alive < core_.options.stuck_after || piece->reported_for == alive) continue;
    piece->reported_for = alive;
    report(info_of(*piece, now));
  }
}

void StuckDetector::report(RunningProcedure running) {
  const bool offloaded = running.kind == RunningProcedure::Kind::kOffloaded;
  log(core_.options.log, LogLevel::kWarning,
      in_words(running) + ", and stuck_after is " + seconds(core_.options.stuck_after) +
          (offloaded ? "; it keeps a thread of the pool, and what its procedure holds is not given "
                       "back before it has ended. Work that takes long says so by "
                       "OffloadControl::heartbeat()"
                     : "; it keeps a worker. Steps must not block: what takes time belongs into "
                       "offload() or await()"));
  if (!core_.options.on_stuck) return;
  core_.pool->post(
      [&core = core_, running = std::move(running)] { call_back(core.options.on_stuck, running); });
}

}  // namespace pv2
