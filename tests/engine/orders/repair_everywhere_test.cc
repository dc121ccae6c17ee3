// SPDX-License-Identifier: Apache-2.0
//
// The machine crashes before and after every store write while an operator retries, skips, sends
// back or bypasses whatever is parked. After a crash the operator has no answer, looks again, and
// repeats the order for what is still parked.

#include "support/job_story.h"
#include "support/repair_orders.h"

namespace pv2::testing::repair_everywhere_test {
namespace {

using namespace std::chrono_literals;

// A child whose undo of step 2 fails for good, `times` times.
JobPlot stuck_undo(std::size_t times) {
  JobPlot plot;
  plot.scripts["p"] = {.children = {"c", "d"}};
  plot.scripts["d"] = {.steps = 2};
  plot.scripts["c"] = {
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
      .undo =
          [times](JobRun& run) {
            if (run.step != 2 || run.world.journal.count("stuck") >= times) return usual();
            run.world.journal.note("stuck");
            return std::optional(Say::fail("stuck"));
          },
      .locks = LockSet().table("shop", "orders", LockMode::kExclusive)};
  plot.roots = {{"p", false}};
  return plot;
}

// Fails beyond its point of no return, `times` times.
JobPlot failed_beyond(std::size_t times) {
  JobPlot plot;
  plot.scripts["m"] = {.steps = 5, .run = [times](JobRun& run) {
                         if (run.step != 4 || run.world.journal.count("failed") >= times) {
                           return usual();
                         }
                         run.world.journal.note("failed");
                         return std::optional(Say::fail("no"));
                       }};
  plot.roots = {{"m", true, JobRoot::Type::kCommittingJob}};
  return plot;
}

}  // namespace

TEST_CASE("crashed anywhere, a parked undo that is retried in the end succeeds") {
  JobPlot plot = stuck_undo(3);
  plot.repairs = RepairVerb::kRetryNow;
  plot.check = [](const auto& journal, const auto&) { check_all_undone(journal); };
  crash_everywhere(plot, {.twice = true});
}

TEST_CASE("crashed anywhere, a parked undo that is skipped leaves that step and no other") {
  JobPlot plot = stuck_undo(1000);
  plot.scripts["c"].undo = [](JobRun& run) {
    return run.step == 1 ? std::optional(Say::fail("stuck")) : usual();
  };
  plot.repairs = RepairVerb::kSkipStep;
  plot.check = [](const auto& journal, const auto&) {
    for (const char* undone : {"undo c.2", "undo p.2", "undo p.1"}) {
      INFO(undone);
      REQUIRE(count(journal, undone) >= 1);
    }
    REQUIRE(count(journal, "undo c.1") == 0);
  };
  crash_everywhere(plot, {.twice = true});
}

TEST_CASE("crashed anywhere, a parked tree that is bypassed undoes nothing more") {
  JobPlot plot = stuck_undo(1000);
  plot.repairs = RepairVerb::kBypass;
  plot.acknowledges = true;
  plot.check = [](const auto& journal, const auto&) {
    for (const char* kept : {"undo c.1", "undo c.2", "undo p.2", "undo p.1"}) {
      REQUIRE(count(journal, kept) == 0);
    }
  };
  crash_everywhere(plot, {.twice = true, .power_cuts = true});
}

TEST_CASE("crashed anywhere, a step beyond the point of no return is retried until it is done") {
  JobPlot plot = failed_beyond(3);
  plot.repairs = RepairVerb::kRetryNow;
  plot.check = [](const auto& journal, const auto&) {
    for (const char* done : {"do m.1", "do m.3", "do m.4", "do m.5"}) {
      REQUIRE(count(journal, done) >= 1);
    }
    REQUIRE(count(journal, "undo m.1") == 0);
  };
  crash_everywhere(plot, {.twice = true});
}

TEST_CASE(
    "crashed anywhere, a skipped step beyond the point of no return is followed by the next one") {
  JobPlot plot = failed_beyond(1000);
  plot.repairs = RepairVerb::kSkipStep;
  plot.check = [](const auto& journal, const auto&) {
    REQUIRE(count(journal, "do m.4") == 0);
    REQUIRE(count(journal, "do m.5") >= 1);
  };
  crash_everywhere(plot, {.twice = true});
}

TEST_CASE(
    "crashed anywhere, siblings of a child that failed beyond a point of no return go on with it") {
  JobPlot plot;
  plot.scripts["m"] = {.steps = 4, .children = {}, .run = [](JobRun& run) {
                         if (run.step == 3) {
                           for (const char* child : {"bad", "slow"}) run.spawn(child);
                         }
                         return usual();
                       }};
  plot.scripts["bad"] = {.run = [](JobRun& run) {
    if (run.step != 2 || run.world.journal.count("failed") >= 1) return usual();
    run.world.journal.note("failed");
    return std::optional(Say::fail("no"));
  }};
  plot.scripts["slow"] = {.steps = 5};
  plot.roots = {{"m", true, JobRoot::Type::kCommittingJob}};
  plot.repairs = RepairVerb::kRetryNow;
  plot.check = [](const auto& journal, const auto&) {
    for (const char* done : {"do bad.3", "do slow.5", "do m.4"}) REQUIRE(count(journal, done) >= 1);
  };
  crash_everywhere(plot, {.twice = true});
}

TEST_CASE("crashed anywhere, a tree beyond a point of no return is sent back as far as it goes") {
  JobPlot plot;
  plot.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) {
      run.ctx.spawn(CommittingJob(run.world, "m"));
      run.spawn("c");
    }
    return usual();
  }};
  plot.scripts["m"] = {.steps = 4};
  plot.scripts["c"] = {.steps = 5, .run = [](JobRun& run) {
                         return run.step == 5 ? std::optional(Say::fail("no")) : usual();
                       }};
  plot.roots = {{"p", false}};
  plot.repairs = RepairVerb::kFailAndRollBack;
  plot.check = [](const auto& journal, const auto&) {
    for (const char* undone : {"undo c.1", "undo c.4", "undo p.2", "undo p.1"}) {
      REQUIRE(count(journal, undone) >= 1);
    }
    REQUIRE(count(journal, "undo m.3") == 0);
  };
  crash_everywhere(plot, {.twice = true});
}

TEST_CASE("crashed anywhere, a step that used up its attempts is retried, or skipped") {
  for (const RepairVerb verb : {RepairVerb::kRetryNow, RepairVerb::kSkipStep}) {
    JobPlot plot;
    plot.scripts["p"] = {.children = {"a", "b"}};
    plot.scripts["a"] = {.run = [verb](JobRun& run) {
      const bool fails = verb == RepairVerb::kSkipStep || run.world.journal.count("failed") < 3;
      if (run.step != 2 || !fails) return usual();
      run.world.journal.note("failed");
      return std::optional(Say::retry("no"));
    }};
    plot.scripts["b"] = {};
    plot.roots = {{"p"}};
    plot.repairs = verb;
    plot.check = [verb](const auto& journal, const auto&) {
      REQUIRE((count(journal, "do a.2") == 0) == (verb == RepairVerb::kSkipStep));
      for (const char* done : {"do a.3", "do b.3", "do p.3"}) REQUIRE(count(journal, done) >= 1);
    };
    crash_everywhere(plot, {.twice = true, .retry = {.max_attempts = 2}});
  }
}

TEST_CASE("crashed anywhere, a child that is parked while it is undone alone is repaired") {
  for (const RepairVerb verb : {RepairVerb::kRetryNow, RepairVerb::kBypass}) {
    JobPlot plot = stuck_undo(verb == RepairVerb::kRetryNow ? 2 : 1000);
    plot.scripts["p"] = {.run = [](JobRun& run) {
      if (run.step == 2) {
        run.ctx.spawn(Job(run.world, "c"), {.on_failure = OnFailure::kReport});
        run.spawn("d");
      }
      return usual();
    }};
    plot.roots = {{"p"}};
    plot.repairs = verb;
    plot.check = [](const auto& journal, const auto&) {
      for (const char* done : {"do d.2", "do p.3"}) REQUIRE(count(journal, done) >= 1);
      REQUIRE(count(journal, "undo d.1") == 0);
    };
    crash_everywhere(plot, {.twice = true});
  }
}

}  // namespace pv2::testing::repair_everywhere_test
