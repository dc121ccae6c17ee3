// SPDX-License-Identifier: Apache-2.0
//
// The machine crashes before and after every store write of these stories, and each story ends as
// it would have without a crash. The checks of all stories are in job_story.h; here are only those
// that are special to one. (Rows 8-13, 16, 18, 35-39, 48, 49, X12.)

#include "support/job_story.h"

namespace pv2::testing::crash_everywhere_test {
namespace {

using namespace std::chrono_literals;

// "root" spawns "p", of type P, which holds a table for the operation and spawns `children`.
template <class P>
JobPlot plot_under_lock_of(const LockSet& table, std::vector<std::string> children) {
  JobPlot plot;
  plot.scripts["root"] = {.run = [](JobRun& run) {
    if (run.step == 2) run.ctx.spawn(P(run.world, "p"));
    return run.step == 3 ? std::optional(Say::wait_for(1h)) : usual();
  }};
  plot.scripts["p"] = {.run =
                           [children = std::move(children)](JobRun& run) {
                             if (run.step == 1) {
                               for (const std::string& child : children) run.spawn(child);
                             }
                             return run.step == 3 ? std::optional(Say::wait_for(1h)) : usual();
                           },
                       .locks = table};
  return plot;
}

// What the tree of "p" did has been undone, except the steps of "p" that have no undo.
void check_undone_below(std::vector<std::string> journal) {
  std::erase_if(journal, [](const std::string& entry) {
    return entry.ends_with(" p.1") || entry.starts_with("do q.") || entry.starts_with("do other.");
  });
  std::erase_if(journal, [&](const std::string& entry) {
    return entry == "do p.2" && count(journal, "undo p.2") == 0;
  });
  check_all_undone(journal);
}

JobScript waits_at_its_end(const LockSet& locks) {
  return {
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::wait_for(1h)) : usual(); },
      .locks = locks};
}

}  // namespace

TEST_CASE("crashed anywhere, a plain state machine ends as if nothing had happened") {
  JobPlot plot;
  plot.scripts["a"] = {.steps = 5};
  plot.roots = {{"a"}};
  plot.check = [](const auto& journal, const auto&) {
    for (int step = 1; step <= 5; ++step)
      REQUIRE(count(journal, "do a." + std::to_string(step)) >= 1);
  };

  const std::size_t plays = crash_everywhere(plot, {.twice = true, .power_cuts = true});
  CHECK(plays > 100);
}

TEST_CASE("crashed anywhere, a step that is retried keeps the count of its attempts") {
  JobPlot plot;
  plot.scripts["a"] = {.run = [](JobRun& run) {
    if (run.step == 2 && run.ctx.attempt() <= 3) {
      run.world.journal.note("attempt " + std::to_string(run.ctx.attempt()));
      return std::optional(Say::retry("not yet"));
    }
    return usual();
  }};
  plot.roots = {{"a"}};
  plot.check = [](const auto& journal, const auto&) {
    std::vector<std::string> attempts;
    for (const auto& entry : journal) {
      if (entry.starts_with("attempt") && (attempts.empty() || attempts.back() != entry)) {
        attempts.push_back(entry);
      }
    }
    REQUIRE(attempts == Entries{"attempt 1", "attempt 2", "attempt 3"});
  };

  crash_everywhere(plot, {.twice = true});
}

TEST_CASE("crashed anywhere, waits for the pool, for the world and for a deadline all end") {
  JobPlot plot;
  plot.scripts["a"] = {
      .steps = 4, .run = [](JobRun& run) {
        switch (run.step) {
          case 1: {
            const auto* value = run.ctx.offload([] { return std::string("read from disk"); });
            if (value == nullptr) return std::optional(Say::wait());
            run.note = **value;
            return usual();
          }
          case 2: {
            const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
            if (value == nullptr) return std::optional(Say::wait_for(1h));
            run.note += ", " + *value;
            return usual();
          }
          case 3:
            if (!run.ctx.timed_out()) {
              run.ctx.await<int>([](const Completion<int>&) {});  // nobody answers this one
              return std::optional(Say::wait_for(10min));
            }
            return usual();
          default:
            REQUIRE(run.note == "read from disk, the answer");
            return usual();
        }
      }};
  plot.roots = {{"a"}};

  crash_everywhere(plot, {.twice = true, .power_cuts = true});
}

TEST_CASE("crashed anywhere, a parent goes on once, after all its children") {
  JobPlot plot;
  plot.scripts["p"] = {.children = {"c1", "c2", "c3"}};
  plot.scripts["c1"] = {.steps = 1};
  plot.scripts["c2"] = {.steps = 2};
  plot.scripts["c3"] = {.steps = 3};
  plot.roots = {{"p"}};
  plot.check = [](const auto& journal, const auto&) {
    const auto parent = std::find(journal.begin(), journal.end(), "do p.3");
    for (const char* child : {"do c1.1", "do c2.2", "do c3.3"}) {
      REQUIRE(std::find(journal.begin(), parent, child) != parent);
      REQUIRE(std::find(parent, journal.end(), child) == journal.end());
    }
  };

  crash_everywhere(plot, {.twice = true, .power_cuts = true});
}

TEST_CASE("crashed anywhere, a tree of three levels ends") {
  JobPlot plot;
  plot.scripts["a"] = {.children = {"b", "b2"}};
  plot.scripts["b"] = {.steps = 2, .children = {"c", "c2"}};  // done, but for its children
  plot.scripts["b2"] = {.steps = 3, .children = {"c3"}};
  for (const char* leaf : {"c", "c2", "c3"}) plot.scripts[leaf] = {.steps = 2};
  plot.roots = {{"a"}};

  crash_everywhere(plot, {.twice = true});
}

TEST_CASE("crashed anywhere, a failure in the middle is undone in reverse order") {
  JobPlot plot;
  plot.scripts["a"] = {.steps = 4, .run = [](JobRun& run) {
                         if (run.step != 4) return usual();
                         run.effect();  // half done, and then it fails
                         return std::optional(Say::fail("the fourth step cannot"));
                       }};
  plot.roots = {{"a", false}};
  plot.check = [](const auto& journal, const auto&) {
    check_all_undone(journal);
    for (int step = 4; step > 1; --step) {
      check_undone_before(journal, "a." + std::to_string(step), "a." + std::to_string(step - 1));
    }
  };

  crash_everywhere(plot, {.twice = true, .power_cuts = true});
}

TEST_CASE("crashed anywhere, a child that fails has everything undone, children first") {
  JobPlot plot;
  plot.scripts["p"] = {.children = {"good", "bad", "slow"}};
  plot.scripts["good"] = {.steps = 2};
  plot.scripts["bad"] = {.steps = 3, .run = [](JobRun& run) {
                           return run.step == 3 ? std::optional(Say::fail("bad")) : usual();
                         }};
  plot.scripts["slow"] = {.steps = 5};
  plot.roots = {{"p", false}};
  plot.check = [](const auto& journal, const auto&) {
    check_all_undone(journal);
    REQUIRE(count(journal, "do p.3") == 0);
    for (const char* step : {"good.2", "bad.2", "slow.1"}) {
      check_undone_before(journal, step, "p.2");
    }
    for (const char* child : {"good", "bad", "slow"}) {
      check_undone_before(journal, std::string(child) + ".2", std::string(child) + ".1");
    }
    check_undone_before(journal, "p.2", "p.1");
  };

  crash_everywhere(plot, {.twice = true, .power_cuts = true});
}

TEST_CASE("crashed anywhere, children that end together with the one that fails are undone") {
  JobPlot plot;
  plot.scripts["p"] = {.children = {"good", "bad", "other", "good too"}};
  for (const char* good : {"good", "good too"}) plot.scripts[good] = {.steps = 1};
  for (const char* bad : {"bad", "other"}) {
    plot.scripts[bad] = {.run = [](JobRun&) { return std::optional(Say::fail("at once")); }};
  }
  plot.roots = {{"p", false}};
  plot.check = [](const auto& journal, const auto&) {
    check_all_undone(journal);
    REQUIRE(count(journal, "undo p.2") >= 1);
  };

  crash_everywhere(plot, {.twice = true});
}

TEST_CASE("crashed anywhere, a parent that was done but for a child that fails has no result") {
  JobPlot plot;
  plot.scripts["p"] = {.steps = 2, .children = {"good", "bad"}};
  plot.scripts["good"] = {.steps = 1};
  plot.scripts["bad"] = {
      .run = [](JobRun& run) { return run.step == 2 ? std::optional(Say::fail("bad")) : usual(); }};
  plot.roots = {{"p", false}};
  plot.check = [](const auto& journal, const auto&) { check_all_undone(journal); };

  crash_everywhere(plot, {.twice = true});
}

TEST_CASE("crashed anywhere, a failure three levels down undoes the whole tree") {
  JobPlot plot;
  plot.scripts["a"] = {.children = {"b", "b2"}};
  plot.scripts["b"] = {.children = {"c"}};
  plot.scripts["b2"] = {.steps = 2};
  plot.scripts["c"] = {.steps = 2, .run = [](JobRun& run) {
                         return run.step == 2 ? std::optional(Say::fail("deep down")) : usual();
                       }};
  plot.roots = {{"a", false}};
  plot.check = [](const auto& journal, const auto&) {
    check_all_undone(journal);
    check_undone_before(journal, "c.1", "b.2");
    check_undone_before(journal, "b.2", "b.1");
    check_undone_before(journal, "b.1", "a.2");
  };

  crash_everywhere(plot, {.twice = true});
}

TEST_CASE("crashed anywhere, an undo that fails twice is tried again until it succeeds") {
  JobPlot plot;
  plot.scripts["a"] = {
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
      .undo =
          [](JobRun& run) {
            if (run.step != 2 || run.ctx.attempt() > 2) return usual();
            run.world.journal.note("cannot undo, attempt " + std::to_string(run.ctx.attempt()));
            return std::optional(Say::retry("not yet"));
          }};
  plot.roots = {{"a", false}};
  plot.check = [](const auto& journal, const auto&) {
    check_all_undone(journal);
    check_undone_before(journal, "a.2", "a.1");
    REQUIRE(count(journal, "cannot undo, attempt 2") >= 1);
  };

  crash_everywhere(plot, {.twice = true});
}

TEST_CASE("crashed anywhere, an undo that waits ends") {
  JobPlot plot;
  plot.scripts["a"] = {
      .run = [](JobRun& run) { return run.step == 3 ? std::optional(Say::fail("no")) : usual(); },
      .undo =
          [](JobRun& run) {
            if (run.step == 2) {
              const auto* value = run.ctx.await<std::string>([&](auto c) { run.world.ask(c); });
              if (value == nullptr) return std::optional(Say::wait());
            }
            if (run.step == 1 && !run.ctx.timed_out()) return std::optional(Say::wait_for(1min));
            return usual();
          }};
  plot.roots = {{"a", false}};
  plot.check = [](const auto& journal, const auto&) { check_all_undone(journal); };

  crash_everywhere(plot, {.twice = true});
}

TEST_CASE("crashed anywhere, a child that is final on success stays, and its parent is undone") {
  JobPlot plot;
  plot.scripts["c"] = {.steps = 1};
  plot.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) run.ctx.spawn(FinalJob(run.world, "final"));
    return run.step == 3 ? std::optional(Say::fail("after the child")) : usual();
  }};
  plot.scripts["final"] = {.children = {"c"}};
  plot.roots = {{"p", false}};
  plot.check = [](const auto& journal, const auto&) {
    REQUIRE(count(journal, "undo c.1") == 0);
    REQUIRE(count(journal, "undo final.1") == 0);
    REQUIRE(count(journal, "undo final.2") == 0);
    REQUIRE(count(journal, "undo p.1") >= 1);
    REQUIRE(count(journal, "undo p.2") >= 1);
  };

  crash_everywhere(plot, {.twice = true});
}

TEST_CASE("crashed anywhere, procedures that want the same table never overlap") {
  JobPlot plot;
  const auto exclusive = LockSet().table("shop", "orders", LockMode::kExclusive);
  auto by_step = exclusive;
  by_step.scope(LockScope::kStep);
  plot.scripts["x1"] = {.steps = 2, .locks = exclusive};
  plot.scripts["x2"] = {.steps = 2, .children = {"x2c"}, .locks = exclusive};
  plot.scripts["x2c"] = {.steps = 2, .locks = exclusive};  // under its parent's lock
  plot.scripts["step"] = {.steps = 3, .locks = by_step};
  plot.roots = {{"x1"}, {"x2"}, {"step"}};
  plot.check = [](const auto& journal, const auto&) {
    const auto first = [&](const char* entry) {
      return std::find(journal.begin(), journal.end(), entry) - journal.begin();
    };
    const auto last = [&](const char* entry) {
      return journal.rend() - std::find(journal.rbegin(), journal.rend(), entry);
    };
    // An operation-scoped lock is held from the first step to the end of the tree.
    const bool apart = last("do x1.2") <= first("do x2.1") || last("do x2c.2") <= first("do x1.1");
    REQUIRE(apart);
  };

  crash_everywhere(plot, {.twice = true});
}

TEST_CASE("crashed anywhere, a rollback takes back the locks of the children that it undoes") {
  JobPlot plot;
  const auto table = LockSet().table("shop", "orders", LockMode::kExclusive);
  plot.scripts["p"] = {.children = {"c"}, .run = [](JobRun& run) {
                         return run.step == 3 ? std::optional(Say::fail("after the child"))
                                              : usual();
                       }};
  plot.scripts["c"] = {.steps = 2, .locks = table};
  plot.scripts["other"] = {.steps = 3, .locks = table};
  plot.roots = {{"p", false}, {"other"}};
  plot.check = [](const auto& journal, const auto&) {
    REQUIRE(count(journal, "undo c.1") >= 1);
    REQUIRE(count(journal, "undo c.2") >= 1);
    check_undone_before(journal, "c.1", "p.2");
    // "other" was not in the middle of its steps on the table while "c" was undone.
    bool inside = false;
    for (const auto& entry : journal) {
      if (entry == "do other.1") inside = true;
      if (entry == "do other.3") inside = false;
      if (entry.starts_with("undo c.")) REQUIRE_FALSE(inside);
    }
  };

  crash_everywhere(plot, {.twice = true});
}

TEMPLATE_TEST_CASE(
    "crashed anywhere, a lock keeps others out until what was done under it is undone", "",
    PlainJob, LateJob) {
  const auto table = LockSet().table("shop", "orders", LockMode::kExclusive);
  JobPlot plot = plot_under_lock_of<TestType>(table, {"c"});
  plot.scripts["c"] = {.steps = 2};
  plot.scripts["other"] = {.steps = 2, .run = [](JobRun& run) {
                             const bool may_begin = run.world.journal.count("do p.1") != 0;
                             if (!may_begin) return std::optional(Say::wait_for(1ms));
                             if (run.step == 2) run.spawn("q");
                             return usual();
                           }};
  plot.scripts["q"] = {.steps = 1, .locks = table};
  plot.roots = {{.name = "root", .succeeds = false, .aborts_at = 8}, {"other"}};
  plot.check = [](const auto& journal, const auto&) {
    check_undone_below(journal);
    const auto first = std::find(journal.begin(), journal.end(), "do c.1");
    const auto last = std::find(journal.rbegin(), journal.rend(), "undo c.1").base();
    if (first != journal.end()) REQUIRE(std::find(first, last, "do q.1") == last);
    REQUIRE(count(journal, "do q.1") >= 1);
  };

  crash_everywhere(plot, {.twice = true});
}

TEMPLATE_TEST_CASE("crashed anywhere, siblings are undone under the lock of their parent", "",
                   PlainJob, LateJob) {
  // How many of the two have finished and need the lock again for their undo.
  const int finished = GENERATE(0, 1, 2);
  const auto table = LockSet().table("shop", "orders", LockMode::kExclusive);
  JobPlot plot = plot_under_lock_of<TestType>(table, {"c1", "c2"});
  plot.scripts["c1"] = finished == 2 ? JobScript{.locks = table} : waits_at_its_end(table);
  plot.scripts["c2"] = finished == 0 ? waits_at_its_end(table) : JobScript{.locks = table};
  const std::size_t entries = 7 + static_cast<std::size_t>(finished == 2 ? 3 : finished);
  plot.roots = {{.name = "root", .succeeds = false, .aborts_at = entries}};
  plot.check = [](const auto& journal, const auto&) { check_undone_below(journal); };

  crash_everywhere(plot, {.twice = true});
}

TEST_CASE("crashed anywhere, rows of the host change exactly once per step") {
  JobPlot plot;
  const auto add = [](JobRun& run) {
    const auto row = run.ctx.get_row("total");
    REQUIRE(row.ok());
    const int total = row->has_value() ? std::stoi(**row) : 0;
    run.ctx.put_row("total", std::to_string(total + 1));
    run.ctx.put_row("seen/" + run.label(), "yes");
    if (run.step == 2 && run.ctx.attempt() == 1) return std::optional(Say::retry("forget it"));
    return usual();
  };
  plot.scripts["a"] = {.steps = 5, .run = add};
  plot.roots = {{"a"}};
  plot.check = [](const auto&, const auto& row) {
    REQUIRE(row("total") == "5");
    REQUIRE(row("seen/a.5") == "yes");
  };

  crash_everywhere(plot, {.twice = true, .power_cuts = true});
}

TEST_CASE("crashed anywhere, an acknowledged tree is gone with its nonce, and nothing else is") {
  JobPlot plot;
  plot.scripts["a"] = {.steps = 1};
  plot.scripts["p"] = {.children = {"c1", "c2"}};
  plot.scripts["c1"] = plot.scripts["c2"] = {.steps = 1};
  plot.roots = {{"a"}, {"p"}};
  plot.acknowledges = true;

  crash_everywhere(plot, {.twice = true, .power_cuts = true});
}

TEST_CASE("crashed anywhere, a tree past its point of no return is finished") {
  JobPlot plot;
  plot.scripts["a"] = {.steps = 5, .run = [](JobRun& run) {
                         if (run.step == 4 && run.ctx.attempt() <= 2) {
                           return std::optional(Say::retry("a while"));
                         }
                         return usual();
                       }};
  plot.roots = {{"a", true, JobRoot::Type::kCommittingJob}};

  crash_everywhere(plot, {.twice = true});
}

TEST_CASE("crashed anywhere, a step that repeats itself is undone once") {
  JobPlot plot;
  plot.scripts["a"] = {.run = [](JobRun& run) {
    if (run.step == 3) return std::optional(Say::fail("no"));
    if (run.step != 2 || run.note.size() >= 3) return usual();
    run.note += "x";
    return std::optional(Say::again());
  }};
  plot.roots = {{"a", false}};
  plot.check = [](const auto& journal, const auto&) {
    check_all_undone(journal);
    check_undone_before(journal, "a.2", "a.1");
  };

  crash_everywhere(plot, {.twice = true});
}

}  // namespace pv2::testing::crash_everywhere_test
