// SPDX-License-Identifier: Apache-2.0
//
// memory_steps_bench: steps per second when nothing has to become durable: the engine itself, with
// the Noop store, for which no record is encoded. Measured with one and two workers,
// both schedulers, and steps that do nothing or compute for 2 us, 4096 procedures in flight or
// fewer. With procedures of 500 steps instead of five (memory_long_steps) the load hardly counts.
// With execute() instead of submit(), wait() and acknowledge(): memory_executed_steps.
//
//     memory_steps_bench [--scheduler=simple|master] [--user-work=0|2] [--steps=5|500]
//                        [--workers=N] [--in-flight=1|64|4096] [--verbs=one|three] [--quick] ...
//
// The options choose one measurement, for a profiler.

#include <fmt/format.h>
#include <pv2/base/mutex.h>
#include <pv2/store/noop_procedure_store.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "harness/closed_load.h"
#include "harness/engine.h"
#include "harness/five_steps.h"
#include "harness/long_run.h"
#include "harness/machine.h"
#include "harness/options.h"
#include "harness/rounds.h"

namespace pv2::bench {
namespace {

constexpr unsigned kInFlight = 4096;
// LongRuns take turns, so with more of them hardly any would end in a window.
constexpr unsigned kLongInFlight = 64;

enum class Kind { kFiveSteps, kExecuted, kLongRun };

/// What is measured, without the number of workers. A value.
struct Subject {
  Kind kind = Kind::kFiveSteps;
  SchedulerKind scheduler = SchedulerKind::kSimple;
  unsigned user_work_us = 0;
  unsigned in_flight = kInFlight;
  friend auto operator<=>(const Subject&, const Subject&) = default;

  [[nodiscard]] unsigned steps() const {
    return kind == Kind::kLongRun ? kStepsPerLongRun : kStepsPerProcedure;
  }
};

/// Which subjects to measure; all where nothing is set. A value.
struct Choice {
  std::optional<std::string_view> scheduler;
  std::optional<unsigned> user_work_us;
  std::optional<unsigned> steps;
  std::optional<unsigned> workers;
  std::optional<unsigned> in_flight;
  std::optional<std::string_view> verbs;

  [[nodiscard]] bool has(const Subject& subject) const {
    const std::string_view subject_verbs = subject.kind == Kind::kExecuted ? "one" : "three";
    return verbs.value_or(subject_verbs) == subject_verbs &&
           scheduler.value_or(to_string(subject.scheduler)) == to_string(subject.scheduler) &&
           user_work_us.value_or(subject.user_work_us) == subject.user_work_us &&
           steps.value_or(subject.steps()) == subject.steps() &&
           in_flight.value_or(subject.in_flight) == subject.in_flight;
  }
  bool set(std::string_view name, std::string_view value) {
    const auto number = static_cast<unsigned>(number_in(value));
    if (name == "--scheduler") scheduler = value;
    if (name == "--user-work") user_work_us = number;
    if (name == "--steps") steps = number;
    if (name == "--workers") workers = number;
    if (name == "--in-flight") in_flight = number;
    if (name == "--verbs") verbs = value;
    return name == "--scheduler" || name == "--user-work" || name == "--steps" ||
           name == "--workers" || name == "--in-flight" || name == "--verbs";
  }
};

class MemorySteps {
 public:
  MemorySteps(Options options, const Choice& choice)
      : options_(std::move(options)),
        workers_(choice.workers),
        two_us_(std::chrono::microseconds(2)) {
    for (const SchedulerKind scheduler : {SchedulerKind::kSimple, SchedulerKind::kMaster}) {
      for (const Subject& subject :
           {Subject{Kind::kFiveSteps, scheduler, 0}, Subject{Kind::kFiveSteps, scheduler, 2},
            Subject{Kind::kFiveSteps, scheduler, 0, 64}, Subject{Kind::kFiveSteps, scheduler, 0, 1},
            Subject{Kind::kExecuted, scheduler, 0, 64}, Subject{Kind::kExecuted, scheduler, 0, 1},
            Subject{Kind::kLongRun, scheduler, 0, kLongInFlight}}) {
        if (choice.has(subject)) subjects_.push_back(subject);
      }
    }
  }

  void run() {
    for (unsigned round = 0; round < options_.runs; ++round) {
      progress(fmt::format("steps in memory, round {} of {}", round + 1, options_.runs));
      for (const Subject& subject : subjects_) {
        for (const unsigned workers : workers_ ? std::vector{*workers_} : std::vector{1U, 2U}) {
          rounds_[{subject, workers}].add(measure(subject, workers));
        }
        if (!workers_) add_scaling(subject);
      }
    }
    print();
  }

 private:
  // The ratio of the two that were just measured one after the other.
  void add_scaling(const Subject& subject) {
    const Round& one = rounds_[{subject, 1}].newest();
    const Round& two = rounds_[{subject, 2}].newest();
    scaling_[subject].add(
        {.values = {{"ratio", two.values.at("steps_per_s") / one.values.at("steps_per_s")}},
         .other_cores = std::max(one.other_cores, two.other_cores)});
  }

  [[nodiscard]] std::unique_ptr<ClosedLoad> load_of(const Subject& subject,
                                                    ProcedureExecutor& executor,
                                                    const UserWork& work) const {
    const auto make = [&](auto verb) {
      return std::make_unique<ClosedLoad>(executor, options_.callbacks, std::move(verb));
    };
    switch (subject.kind) {
      case Kind::kFiveSteps:
        return make(ClosedLoad::Submit(std::bind_front(submit_five_steps, std::cref(work))));
      case Kind::kExecuted:
        return make(ClosedLoad::Execute(std::bind_front(execute_five_steps, std::cref(work))));
      case Kind::kLongRun:
        return make(ClosedLoad::Submit(submit_long_run));
    }
    return nullptr;
  }

  Round measure(const Subject& subject, unsigned workers) const {
    const UserWork& work = subject.user_work_us == 0 ? no_work_ : two_us_;
    ProcedureRegistry registry;
    registry.add<FiveSteps>(work).add<LongRun>();
    const auto executor = open_engine(noop(), std::move(registry),
                                      {.scheduler = subject.scheduler, .workers = workers});
    const auto made = load_of(subject, *executor, work);
    ClosedLoad& load = *made;
    load.start(subject.in_flight);
    std::this_thread::sleep_for(options_.warm_up);
    const std::uint64_t ended_before = load.ended();
    const MutexContention met_before = mutex_contention();
    begin_line_moves();
    const UsageMeter meter;
    std::this_thread::sleep_for(options_.window);
    const double steps = static_cast<double>((load.ended() - ended_before) * subject.steps());
    const Usage usage = meter.stop();
    const auto moved = static_cast<double>(end_line_moves());
    const MutexContention met = mutex_contention();
    Round round;
    round.other_cores = usage.other_cores;
    round.values = {
        {"steps_per_s", steps / usage.seconds},
        {"cpu_us_per_step", usage.cpu_seconds / steps * 1e6},
        {"cores", usage.cpu_seconds / usage.seconds},
        {"contended_per_step",
         static_cast<double>(met.found_taken - met_before.found_taken) / steps},
        {"slept_per_step", static_cast<double>(met.slept - met_before.slept) / steps},
    };
    if (kCountsLineMoves) round.values.emplace("lines_moved_per_step", moved / steps);
    return round;
  }

  void print() const {
    for (const auto& [key, rounds] : rounds_) {
      const auto& [subject, workers] = key;
      ResultRow row = row_of("steps", subject);
      row.set("workers", workers);
      rounds.fill(row, "steps_per_s");
      row.print();
    }
    for (const auto& [subject, rounds] : scaling_) {
      ResultRow row = row_of("scaling", subject);
      row.set("workers", 2);
      rounds.fill(row, "ratio");
      row.print();
    }
  }

  static ResultRow row_of(std::string_view what, const Subject& subject) {
    const std::string_view kind = subject.kind == Kind::kLongRun    ? "long_"
                                  : subject.kind == Kind::kExecuted ? "executed_"
                                                                    : "";
    ResultRow row(fmt::format("memory_{}{}", kind, what));
    row.set("in_flight", subject.in_flight).set("store", "noop");
    row.set("scheduler", to_string(subject.scheduler)).set("user_work_us", subject.user_work_us);
    return row;
  }

  const Options options_;
  const std::optional<unsigned> workers_;
  const UserWork no_work_{};
  const UserWork two_us_;
  std::vector<Subject> subjects_;
  std::map<std::pair<Subject, unsigned>, Rounds> rounds_;
  std::map<Subject, Rounds> scaling_;
};

}  // namespace
}  // namespace pv2::bench

int main(int argc, char** argv) {
  using namespace pv2::bench;
  Choice choice;
  Options options = parse_options(
      argc, argv,
      "memory_steps_bench [--scheduler=simple|master] [--user-work=0|2] [--steps=5|500] "
      "[--workers=N] [--in-flight=1|64|4096] [--verbs=one|three]",
      [&](std::string_view name, std::string_view value) { return choice.set(name, value); });
  MemorySteps(std::move(options), choice).run();
}
