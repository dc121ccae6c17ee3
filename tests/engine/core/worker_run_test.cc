// SPDX-License-Identifier: Apache-2.0
//
// What an idle worker may take from the run of another one: of short steps nothing at the first
// look, and everything that waits at the next one.

#include "core/worker_run.h"

#include <pv2/base/clock.h>
#include <pv2/scheduler/simple_procedure_scheduler.h>

#include <array>
#include <deque>

#include "support/catch.h"

namespace pv2::testing::worker_run_test {
namespace {

using Work = WorkerRun::Work;

struct Ground {
  std::deque<Execution> executions;
  std::deque<StepCommit> commits;
  SystemClock clock;
  SimpleProcedureScheduler scheduler{clock};
  WorkerRun run;
  std::array<StepJob, WorkerRun::kMost> taken{};

  void fill(std::size_t jobs, bool shared, Work work = Work::kAny) {
    std::array<StepJob, WorkerRun::kMost> all{};
    for (std::size_t i = 0; i < jobs; ++i) {
      Execution& execution = executions.emplace_back();
      execution.id = ProcedureId{executions.size()};
      StepCommit& commit = commits.emplace_back();
      commit.execution = &execution;
      commit.needs_record = true;
      all[i] = {&execution, &commit};
    }
    run.fill(std::span(all).first(jobs), {}, work, shared);
  }
  // Begins a step, and ends the one before it.
  StepCommit* step(StepCommit* ended) { return run.next(ended, 0, scheduler, false).job->commit; }
  // The records belong to `commits`.
  static std::size_t count(FinishedSteps finished) {
    std::size_t records = 0;
    while (finished.with_record.pop_front() != nullptr) ++records;
    return records;
  }
  void end(StepCommit* last) {
    CHECK_FALSE(run.next(last, 0, scheduler, false).job.has_value());
    count(run.take_finished());
  }
};

TEST_CASE("of a run of short steps a helper takes what waits when it has seen it wait before") {
  Ground ground;
  ground.fill(9, false);
  StepCommit* const first = ground.step(nullptr);

  WorkerRun::Help look = ground.run.help_out(ground.taken, Work::kAny, 0);
  CHECK(look.jobs == 0);
  CHECK(look.number != 0);
  look = ground.run.help_out(ground.taken, Work::kAny, look.number);
  CHECK(look.jobs == 4);
  CHECK(look.number != 0);  // four more wait
  look = ground.run.help_out(ground.taken, Work::kAny, look.number + 1);
  CHECK(look.jobs == 0);  // that was another run

  StepCommit* running = first;
  for (int i = 0; i < 4; ++i) running = ground.step(running);
  look = ground.run.help_out(ground.taken, Work::kAny, look.number);
  CHECK(look.jobs == 0);
  CHECK(Ground::count(std::move(look.finished)) == 4);
  CHECK(look.number == 0);  // nothing waits
  ground.end(running);
}

TEST_CASE("a helper takes a half of a shared run at once, and its records at its next look") {
  Ground ground;
  ground.fill(3, true);
  StepCommit* running = ground.step(nullptr);
  running = ground.step(running);

  WorkerRun::Help look = ground.run.help_out(ground.taken, Work::kAny, 0);
  CHECK(look.jobs == 1);
  CHECK(look.finished.empty());
  CHECK(look.number != 0);  // a record waits
  CHECK(ground.run.number_if_something_waits() == look.number);
  look = ground.run.help_out(ground.taken, Work::kAny, look.number);
  CHECK(Ground::count(std::move(look.finished)) == 1);
  CHECK(look.number == 0);
  CHECK(ground.run.number_if_something_waits() == 0);
  ground.end(running);
}

TEST_CASE("a reserved worker helps with top work alone, at its first look") {
  const Work work = GENERATE(Work::kAny, Work::kTop);
  Ground ground;
  ground.fill(3, false, work);
  StepCommit* running = ground.step(nullptr);
  running = ground.step(running);

  WorkerRun::Help look = ground.run.help_out(ground.taken, Work::kTop, 0);

  const bool is_top = work == Work::kTop;
  CHECK(look.jobs == (is_top ? 1 : 0));
  CHECK(Ground::count(std::move(look.finished)) == (is_top ? 1 : 0));
  if (!is_top) running = ground.step(running);
  ground.end(running);
}

TEST_CASE("records that are due are handed over before the worker looks at what may begin") {
  Ground ground;
  ground.fill(3, false);
  StepCommit* const first = ground.step(nullptr);

  WorkerRun::Next next = ground.run.next(first, 0, ground.scheduler, true);
  CHECK(next.has_records);
  CHECK_FALSE(next.job.has_value());
  CHECK(Ground::count(ground.run.take_finished()) == 1);

  // To hand them over has made a tree fail.
  next = ground.run.next(nullptr, 1, ground.scheduler, true);
  CHECK_FALSE(next.has_records);
  CHECK(next.recalled);
  CHECK_FALSE(next.job.has_value());
  CHECK(ground.run.sift(ground.taken, 1, [](const Execution&) { return false; }) == 2);
  ground.end(nullptr);
}

TEST_CASE("no records are due when a run is over: its worker hands them over at its end") {
  Ground ground;
  ground.fill(1, false);
  StepCommit* const only = ground.step(nullptr);
  CHECK_FALSE(ground.run.next(only, 0, ground.scheduler, true).has_records);
  CHECK(Ground::count(ground.run.take_finished()) == 1);
}

}  // namespace
}  // namespace pv2::testing::worker_run_test
