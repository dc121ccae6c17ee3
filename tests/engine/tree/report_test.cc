// SPDX-License-Identifier: Apache-2.0
//
// Children whose failure is only reported: such a child is undone with what it spawned, its parent
// is told, and no other member is touched; also when the tree around it fails meanwhile, when an
// undo of it parks, and wherever the machine crashes.

#include "support/job_story.h"
#include "support/repair_orders.h"
#include "watch/persisted_image.h"

namespace pv2::testing::report_test {
namespace {

using namespace std::chrono_literals;

// Spawns these in step 2, with their failures reported; notes in step 3 how they ended.
JobScript reports_of(std::vector<std::string> children) {
  return {.run = [children](JobRun& run) {
    if (run.step == 2) {
      for (const std::string& child : children) {
        run.ctx.spawn(Job(run.world, child), {.on_failure = OnFailure::kReport});
      }
    }
    if (run.step == 3) {
      for (const ChildOutcome& child : run.ctx.children()) {
        run.note += std::string(to_string(child.state)) + " " + child.error.to_string() + " '" +
                    std::string(child.result) + "';";
      }
      run.world.journal.note("saw " + run.note);
    }
    return usual();
  }};
}

JobScript fails_in(std::uint32_t step) {
  return {.steps = 3, .run = [step](JobRun& run) {
            return run.step == step ? std::optional(Say::fail("no")) : usual();
          }};
}

// None of its steps has an undo.
struct FreeJobKind : JobKind {
  static constexpr std::string_view kType = "test.FreeJob";
  static constexpr auto kSteps =
      steps(step(JobStep::kOne, "ONE", kNoUndo), step(JobStep::kTwo, "TWO", kNoUndo));
};
using FreeJob = ScriptedJob<FreeJobKind>;

const char* const kSaw = "saw SUCCESS OK 'good done';ROLLEDBACK FAILED_PRECONDITION: no '';";

// In step 4 a CommittingJob is past its point of no return.
JobScript spawns_inner_and_bad_in_4() {
  return {.steps = 5, .run = [](JobRun& run) {
            if (run.step == 4) {
              run.ctx.spawn(Job(run.world, "inner"), {.on_failure = OnFailure::kReport});
              run.ctx.spawn(Job(run.world, "bad"));
            }
            return usual();
          }};
}

}  // namespace

TEST_CASE("a failure that is to be reported undoes the child alone, and its parent is told") {
  EngineWorld engine;
  engine.world.scripts["p"] = reports_of({"good", "bad"});
  engine.world.scripts["good"] = {};
  engine.world.scripts["bad"] = fails_in(2);
  engine.world.scripts["bad"].locks = LockSet().table("shop", "orders", LockMode::kExclusive);
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();

  CHECK(engine.result(root).status.ok());
  CHECK(engine.world.journal.count(kSaw) == 1);
  CHECK(engine.world.journal.count("undo bad.1") == 1);
  CHECK(engine.world.journal.count("undo good.1") == 0);
  CHECK(engine.world.journal.count("undo p.2") == 0);
  CHECK(engine.executor().inspect().locks().empty());
  const auto counts = engine.executor().inspect().counts();
  CHECK(counts[0].submitted == 3);
  CHECK(counts[0].succeeded == 2);
  CHECK(counts[0].undone == 1);
}

TEST_CASE("members that ended with a child whose failure was reported leave, and have no locks") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) run.ctx.spawn(Job(run.world, "bad"), {.on_failure = OnFailure::kReport});
    return run.step == 3 ? std::optional(Say::wait_for(1h)) : usual();
  }};
  engine.world.scripts["bad"] = {.children = {"fails", "waits"}};
  engine.world.scripts["fails"] = fails_in(1);
  engine.world.scripts["waits"] = {
      .run = [](JobRun&) { return std::optional(Say::wait_for(1h)); },
      .locks = LockSet().table("shop", "orders", LockMode::kExclusive)};
  engine.open();
  engine.submit("p");
  engine.run();

  const auto ended = engine.executor().inspect().list(
      ListFilter{.state = ProcedureState::kRolledBack,
                 .entity = ResourceKey{ResourceClass::kTable, "shop:orders"}});
  CHECK(ended.procedures.empty());
  CHECK(engine.executor().inspect().live_procedures() == 2);
  CHECK(engine.executor().inspect().locks().empty());
}

TEST_CASE("a child whose failure was reported does not say any more who was interrupted") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) run.ctx.spawn(Job(run.world, "bad"), {.on_failure = OnFailure::kReport});
    return run.step == 3 ? std::optional(Say::wait_for(1h)) : usual();
  }};
  engine.world.scripts["bad"] = {.children = {"fails", "idle"}};
  engine.world.scripts["fails"] = fails_in(1);
  engine.world.scripts["idle"] = {};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  REQUIRE(engine.describe({root.value + 1}).state == ProcedureState::kRolledBack);
  REQUIRE(engine.world.journal.count("undo idle.2") == 0);  // what a restart would not know
  const auto said = [&] {
    std::string words;
    for (const PersistedProcedure& known : PersistedImage::of(engine.executor()).live) {
      if (known.id.value != root.value + 1) continue;
      for (const PersistedField& field : known.fields) {
        if (field.name == "members in the middle of a step") words += field.value;
      }
    }
    return words;
  };
  CHECK(said() == "not said");
  engine.crash_and_open();
  CHECK(said() == "not said");
}

TEST_CASE("a child's rollback goes on when its parent parks beyond a point of no return") {
  const bool crash = GENERATE(false, true);
  bool mended = false;
  EngineWorld engine;
  engine.world.scripts["m"] = spawns_inner_and_bad_in_4();
  engine.world.scripts["inner"] = fails_in(2);
  engine.world.scripts["inner"].undo = [](JobRun& run) {
    return run.ctx.signal("undo") == nullptr ? std::optional(Say::wait()) : usual();
  };
  engine.world.scripts["bad"] = {.run = [&mended](JobRun& run) {
    if (run.step != 2 || mended) return usual();
    return std::optional(run.ctx.timed_out() ? Say::fail("no") : Say::wait_for(1s));
  }};
  engine.open();
  const ProcedureId root = engine.submit<CommittingJob>("m");
  engine.run();  // `inner` waits in the middle of its undo
  const ProcedureId inner = engine.executor().inspect().list()[1].id;
  const ProcedureId bad = engine.executor().inspect().list()[2].id;
  REQUIRE(engine.describe(inner).state == ProcedureState::kFailed);
  engine.advance(2s);
  REQUIRE(engine.describe(root).parked);
  if (crash) engine.crash_and_open();
  mended = true;
  CHECK(engine.executor().operate().retry_now(inner, kNote).code() ==
        StatusCode::kFailedPrecondition);
  REQUIRE(engine.executor().operate().retry_now(root, kNote).to_string() == "OK");
  CHECK(engine.executor().operate().audit(root)->front().procedure == bad);
  engine.run();
  for (int i = 0; i < 2; ++i) {
    REQUIRE(engine.executor().signal(inner, "undo").ok());
    engine.run();
  }

  CHECK(engine.result(root).status.ok());
  CHECK(engine.world.journal.count("undo inner.2") == 1);
  CHECK(engine.world.journal.count("undo inner.1") == 1);
  CHECK(engine.world.journal.count("undo bad.1") == 0);
}

TEST_CASE("a member that gave up is no longer parked after its domain was bypassed") {
  EngineWorld engine;
  engine.retry.max_attempts = 1;
  engine.world.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) run.ctx.spawn(Job(run.world, "c"), {.on_failure = OnFailure::kReport});
    return run.step == 3 ? std::optional(Say::wait_for(1h)) : usual();
  }};
  engine.world.scripts["c"] = {.children = {"late"}};
  engine.world.scripts["late"] = {.run = [](JobRun&) { return std::optional(Say::retry("late")); }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  REQUIRE(engine.executor().inspect().list({.parked = true}).procedures.size() == 1);
  REQUIRE(engine.executor().operate().bypass(root, kNote).to_string() == "OK");
  engine.run();

  CHECK(engine.executor().inspect().list({.parked = true}).procedures.empty());
  engine.crash_and_open();
  CHECK(engine.executor().inspect().list({.parked = true}).procedures.empty());
}

TEST_CASE("an interrupted step is undone though a wider failure plans its undo again") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) {
      run.ctx.spawn(Job(run.world, "inner"), {.on_failure = OnFailure::kReport});
      run.ctx.spawn(Job(run.world, "bad"));
    }
    return usual();
  }};
  engine.world.scripts["inner"] = {.children = {"fails", "middle"}};
  engine.world.scripts["fails"] = {.run = [](JobRun& run) {
    return std::optional(run.ctx.timed_out() ? Say::fail("no") : Say::wait_for(1s));
  }};
  engine.world.scripts["middle"] = {
      .run = [](JobRun&) { return std::optional(Say::wait_for(1h)); },
      .undo =
          [](JobRun& run) {
            return run.ctx.signal("undo") == nullptr ? std::optional(Say::wait()) : usual();
          },
  };
  engine.world.scripts["bad"] = {.run = [](JobRun& run) {
    return std::optional(run.ctx.timed_out() ? Say::fail("bad") : Say::wait_for(1min));
  }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  engine.advance(2s);  // `inner` fails, and the undo of `middle` waits
  engine.advance(2min);
  const ProcedureId middle = engine.executor().inspect().list().back().id;
  REQUIRE(engine.executor().signal(middle, "undo").ok());
  engine.run();

  CHECK(engine.result(root).status.message() == "bad");
  CHECK(engine.world.journal.count("undo middle.1") == 1);
}

TEST_CASE("a member stopped in a step stays as its record says when its domain parks") {
  const bool backs_off = GENERATE(false, true);
  EngineWorld engine;
  engine.retry.base = engine.retry.cap = 1h;
  engine.world.scripts["m"] = spawns_inner_and_bad_in_4();
  engine.world.scripts["inner"] = {.children = {"fails", "middle", "other"}};
  engine.world.scripts["fails"] = {.run = [](JobRun& run) {
    return std::optional(run.ctx.timed_out() ? Say::fail("no") : Say::wait_for(1s));
  }};
  engine.world.scripts["middle"] = {
      .run =
          [backs_off](JobRun&) {
            return std::optional(backs_off ? Say::retry("later") : Say::wait_for(1h));
          },
      .undo = [](JobRun&) { return std::optional(Say::wait()); },
  };
  engine.world.scripts["other"] = engine.world.scripts["middle"];
  engine.world.scripts["bad"] = {.run = [](JobRun& run) {
    return std::optional(run.ctx.timed_out() ? Say::fail("bad") : Say::wait_for(1min));
  }};
  engine.open();
  const ProcedureId root = engine.submit<CommittingJob>("m");
  engine.run();
  engine.advance(2s);  // `inner` fails; the undo of one of its last two waits
  const auto last_two = [&] {
    const auto all = engine.executor().inspect().list();
    return std::vector<ProcedureInfo>(all.end() - 2, all.end());
  };
  for (const ProcedureInfo& each : last_two()) REQUIRE(each.state == ProcedureState::kFailed);
  engine.advance(2min);
  REQUIRE(engine.describe(root).parked);
  const auto before = last_two();
  const ProcedureInfo& stopped = before[before[0].state == ProcedureState::kFailed ? 1 : 0];
  CHECK(stopped.state == ProcedureState::kWaitingTimeout);
  CHECK(stopped.attempt == (backs_off ? 2 : 1));
  engine.crash_and_open();
  const auto after = last_two();
  for (const std::size_t i : {0, 1}) {
    CHECK(after[i].id == before[i].id);
    CHECK(after[i].state == before[i].state);
    CHECK(after[i].attempt == before[i].attempt);
    CHECK(after[i].error.to_string() == before[i].error.to_string());
  }
}

TEST_CASE("crashed anywhere, a child whose failure is reported is undone alone") {
  JobPlot plot;
  plot.scripts["p"] = reports_of({"good", "bad"});
  plot.scripts["good"] = {};
  plot.scripts["bad"] = fails_in(3);
  plot.roots = {{"p"}};
  plot.check = [](const auto& journal, const auto&) {
    REQUIRE(count(journal, kSaw) >= 1);
    for (const char* undone : {"undo bad.1", "undo bad.2"}) REQUIRE(count(journal, undone) >= 1);
    for (const char* kept : {"undo good.1", "undo p.2"}) REQUIRE(count(journal, kept) == 0);
    check_undone_before(journal, "bad.2", "bad.1");
  };
  crash_everywhere(plot, {.twice = true, .power_cuts = true});
}

TEST_CASE("crashed anywhere, a child is undone with what it spawned, and then is over") {
  JobPlot plot;
  plot.scripts["p"] = reports_of({"sub", "good"});
  plot.scripts["sub"] = {.children = {"g", "bad", "slow"}};
  plot.scripts["g"] = {.steps = 1, .locks = LockSet().table("shop", "g", LockMode::kExclusive)};
  plot.scripts["bad"] = fails_in(2);
  plot.scripts["slow"] = {.steps = 5,
                          .locks = LockSet().table("shop", "slow", LockMode::kExclusive)};
  plot.scripts["good"] = {};
  plot.roots = {{"p"}};
  plot.check = [](const auto& journal, const auto&) {
    REQUIRE(count(journal, "do p.3") >= 1);
    REQUIRE(count(journal, "do sub.3") == 0);
    for (const char* undone : {"undo g.1", "undo bad.1", "undo sub.2", "undo sub.1"}) {
      REQUIRE(count(journal, undone) >= 1);
    }
    for (const char* kept : {"undo good.1", "undo p.2"}) REQUIRE(count(journal, kept) == 0);
    check_undone_before(journal, "bad.1", "sub.2");
  };
  crash_everywhere(plot, {.twice = true});
}

TEST_CASE("crashed anywhere, a tree that fails after a report undoes what is left of it") {
  JobPlot plot;
  plot.scripts["p"] = reports_of({"good", "bad"});
  plot.scripts["p"].steps = 4;
  plot.scripts["good"] = {.steps = 1};
  plot.scripts["bad"] = {.children = {"g"}, .run = [](JobRun& run) {
                           return run.step == 3 ? std::optional(Say::fail("no")) : usual();
                         }};
  plot.scripts["g"] = {.steps = 1};
  const auto run = plot.scripts["p"].run;
  plot.scripts["p"].run = [run](JobRun& job) {
    return job.step == 4 ? std::optional(Say::fail("later")) : run(job);
  };
  plot.roots = {{"p", false}};
  plot.check = [](const auto& journal, const auto&) {
    check_all_undone(journal);
    check_undone_before(journal, "bad.1", "p.3");
    check_undone_before(journal, "p.3", "good.1");
  };
  crash_everywhere(plot, {.twice = true});
}

TEST_CASE("crashed anywhere, a tree that fails while a child is undone takes that undo over") {
  JobPlot plot;
  plot.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) {
      run.ctx.spawn(Job(run.world, "bad"), {.on_failure = OnFailure::kReport});
      run.spawn("fatal");
    }
    return usual();
  }};
  plot.scripts["bad"] = fails_in(3);
  plot.scripts["bad"].undo = [](JobRun& run) {
    return run.step == 2 && run.ctx.attempt() == 1 ? std::optional(Say::retry("later")) : usual();
  };
  plot.scripts["fatal"] = {.run = [](JobRun& run) {
    if (run.step != 2) return usual();
    return run.ctx.timed_out() ? std::optional(Say::fail("fatal"))
                               : std::optional(Say::wait_for(1ms));
  }};
  plot.roots = {{"p", false}};
  plot.check = [](const auto& journal, const auto&) {
    check_all_undone(journal);
    REQUIRE(count(journal, "do p.3") == 0);
  };
  crash_everywhere(plot, {.twice = true});
}

TEST_CASE("crashed anywhere, reports within reports reach the parents that asked for them") {
  JobPlot plot;
  plot.scripts["p"] = reports_of({"mid", "good"});
  plot.scripts["mid"] = reports_of({"bad", "good"});
  plot.scripts["bad"] = fails_in(1);
  plot.scripts["good"] = {.steps = 1};
  plot.roots = {{"p"}};
  plot.repeats = 2;  // "good" is there twice
  plot.check = [](const auto& journal, const auto&) {
    REQUIRE(count(journal, "do mid.3") >= 1);
    REQUIRE(count(journal, "saw SUCCESS OK 'mid done';SUCCESS OK 'good done';") >= 1);
  };
  crash_everywhere(plot);
}

TEST_CASE("crashed anywhere, an abort undoes a tree in the middle of a report") {
  for (const std::size_t at : {3U, 5U, 6U, 7U, 8U}) {
    JobPlot plot;
    plot.scripts["p"] = reports_of({"good", "bad"});
    plot.scripts["good"] = {.steps = 2};
    plot.scripts["bad"] = fails_in(3);
    plot.roots = {{.name = "p", .succeeds = std::nullopt, .aborts_at = at}};
    crash_everywhere(plot);
  }
}

TEST_CASE("an undo that parks in a child whose failure is reported stops no other member") {
  const bool restart = GENERATE(false, true);
  const auto verb = GENERATE(RepairVerb::kSkipStep, RepairVerb::kRetryNow, RepairVerb::kBypass);
  const auto crash = GENERATE(Crash::kNone, Crash::kBefore, Crash::kAfter);
  const bool by_root = GENERATE(false, true);
  EngineWorld engine;
  bool mended = false;
  engine.world.scripts["p"] = reports_of({"stuck", "good"});
  engine.world.scripts["good"] = {.steps = 4};
  engine.world.scripts["stuck"] = stuck(mended);
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  if (restart) engine.crash_and_open();
  engine.run();
  const ProcedureId child{root.value + 1};
  REQUIRE(engine.describe(child).parked);
  CHECK_FALSE(engine.describe(root).parked);
  CHECK(engine.world.journal.count("do good.4") == 1);
  const auto why = engine.executor().inspect().explain(root);
  REQUIRE(why.ok());
  CHECK(why->procedures[0].reasons[0].kind == WaitReason::Kind::kChildren);
  CHECK(why->procedures[1].reasons[0].kind == WaitReason::Kind::kParked);
  mended = verb == RepairVerb::kRetryNow;
  order(engine, by_root ? root : child, verb, crash, root);
  engine.run();

  CHECK(engine.result(root).status.ok());
  CHECK_FALSE(engine.result(root).bypassed);
  CHECK(engine.world.journal.count("do p.3") == 1);
  CHECK(engine.world.journal.count("undo stuck.1") == (verb == RepairVerb::kBypass ? 0 : 1));
  CHECK(engine.world.journal.count("undo stuck.2") == (mended ? 1 : 0));
  CHECK(engine.executor().inspect().locks().empty());
  CHECK(engine.executor().operate().audit(root)->front().procedure == child);
}

TEST_CASE("a child that gave up and whose failure is reported is bypassed alone") {
  const auto crash = GENERATE(Crash::kNone, Crash::kBefore, Crash::kAfter);
  const bool by_root = GENERATE(false, true);
  EngineWorld engine;
  engine.retry.max_attempts = 1;
  engine.world.scripts["p"] = reports_of({"unlucky", "good"});
  engine.world.scripts["good"] = {};
  engine.world.scripts["unlucky"] = {
      .run = [](JobRun& run) { return run.step == 2 ? std::optional(Say::retry("no")) : usual(); },
      .locks = LockSet().table("shop", "orders", LockMode::kExclusive)};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId child{root.value + 1};
  REQUIRE(engine.describe(child).parked);
  order(engine, by_root ? root : child, RepairVerb::kBypass, crash, root);
  engine.run();

  CHECK(engine.result(root).status.ok());
  CHECK(engine.world.journal.count("undo unlucky.1") == 0);
  CHECK(engine.world.journal.count("do p.3") == 1);
  CHECK(engine.executor().inspect().locks().empty());
}

TEST_CASE("a tree that fails around a parked child is parked there too") {
  EngineWorld engine;
  bool mended = false;
  engine.world.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) {
      run.ctx.spawn(Job(run.world, "stuck"), {.on_failure = OnFailure::kReport});
      run.spawn("fatal");
    }
    return usual();
  }};
  engine.world.scripts["stuck"] = stuck(mended);
  engine.world.scripts["fatal"] = {.run = [](JobRun& run) {
    if (run.step != 2) return usual();
    return run.ctx.timed_out() ? std::optional(Say::fail("fatal"))
                               : std::optional(Say::wait_for(1h));
  }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  REQUIRE_FALSE(engine.describe(root).parked);
  std::vector<ProcedureId> told;
  const auto news_heard = engine.executor().listen([&](const ProcedureNews& news) {
    if (news.kind == ProcedureNews::Kind::kParked) told.push_back(news.id);
  });
  const auto logged = [&] {
    const std::string line = "procedure " + std::to_string(root.value) + " (test.Job) is parked";
    return std::count_if(engine.log_lines.begin(), engine.log_lines.end(),
                         [&](const std::string& each) { return each.starts_with(line); });
  };
  engine.advance(2h);
  CHECK(told == std::vector<ProcedureId>{root});
  CHECK(logged() == 1);
  if (GENERATE(false, true)) {
    engine.crash_and_open();
    CHECK(logged() == 2);  // a start logs it again
  }
  REQUIRE(engine.describe(root).parked);
  mended = GENERATE(true, false);
  // Other steps are to be undone before the one at which it is parked.
  if (!mended) {
    CHECK_THAT(joined(engine.executor().operate().preview(root, RepairVerb::kSkipStep)),
               ContainsSubstring("did TWO, which is not undone"));
  }
  order(engine, root, mended ? RepairVerb::kRetryNow : RepairVerb::kSkipStep,
        GENERATE(Crash::kNone, Crash::kBefore, Crash::kAfter));
  engine.run();
  CHECK(engine.result(root).status == Status(StatusCode::kFailedPrecondition, "fatal"));
  for (const char* undone : {"undo stuck.3", "undo stuck.1", "undo fatal.1", "undo p.1"}) {
    CHECK(engine.world.journal.count(undone) == 1);
  }
  CHECK(engine.world.journal.count("undo stuck.2") == (mended ? 1 : 0));
  // This undo had begun, so it is over before another one begins, also if the machine crashes after
  // the order.
  if (mended) check_undone_before(engine.journal(), "stuck.2", "fatal.1");
  const auto audit = engine.executor().operate().audit(root);
  REQUIRE(audit.status().to_string() == "OK");
  CHECK(audit->front().step == 2);
  CHECK(audit->front().procedure == ProcedureId{root.value + 1});
}

TEST_CASE("a tree that fails around a parked child gives back idle locks when it goes on") {
  EngineWorld engine;
  bool mended = false;
  const auto table = LockSet().table("shop", "returns", LockMode::kExclusive);
  engine.world.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) {
      run.ctx.spawn(Job(run.world, "stuck"), {.on_failure = OnFailure::kReport});
      run.spawn("done");
      run.ctx.spawn(FreeJob(run.world, "holder"));
      run.spawn("fatal");
    }
    return usual();
  }};
  engine.world.scripts["stuck"] = stuck(mended);
  engine.world.scripts["done"] = {.steps = 1, .locks = table};
  engine.world.scripts["holder"] = {
      .steps = 1, .run = [](JobRun&) { return std::optional(Say::wait_for(24h)); }, .locks = table};
  engine.world.scripts["fatal"] = {
      .steps = 1, .run = [](JobRun& run) {
        return std::optional(run.ctx.timed_out() ? Say::fail("fatal") : Say::wait_for(1h));
      }};
  const auto open = [&] {
    ExecutorOptions options = engine.options();
    options.registry.add<FreeJob>(engine.world);
    engine.open(std::move(options));
  };
  open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  engine.advance(2h);
  if (GENERATE(false, true)) open();
  REQUIRE(engine.describe(root).parked);
  mended = true;
  REQUIRE(engine.executor().operate().retry_now(root, kNote).to_string() == "OK");
  engine.run();
  CHECK(engine.result(root).status == Status(StatusCode::kFailedPrecondition, "fatal"));
  CHECK(engine.world.journal.count("undo done.1") == 1);
  CHECK(engine.executor().inspect().locks().empty());
}

TEST_CASE("a tree that fails around several parked children goes on when all were repaired") {
  EngineWorld engine;
  bool mended = false;
  engine.world.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) {
      run.ctx.spawn(Job(run.world, "one"), {.on_failure = OnFailure::kReport});
      run.ctx.spawn(Job(run.world, "two"), {.on_failure = OnFailure::kReport});
    }
    return usual();
  }};
  engine.world.scripts["one"] = engine.world.scripts["two"] = stuck(mended);
  engine.world.scripts["one"].locks = engine.world.scripts["two"].locks = {};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  REQUIRE(engine.executor().abort(root).ok());
  engine.run();
  if (GENERATE(false, true)) engine.crash_and_open();
  mended = GENERATE(true, false);
  const bool crash = GENERATE(false, true);
  for (int orders = 0; orders < 2; ++orders) {
    REQUIRE(engine.describe(root).parked);
    CHECK(engine.world.journal.count("undo one.2") + engine.world.journal.count("undo two.2") == 0);
    REQUIRE((mended ? engine.executor().operate().retry_now(root, kNote)
                    : engine.executor().operate().skip_step(root, kNote))
                .to_string() == "OK");
    engine.run();
    if (crash) engine.crash_and_open();
    engine.run();
  }
  CHECK(engine.result(root).status.code() == StatusCode::kAborted);
  if (mended) return check_all_undone(engine.journal());
  for (const char* undone : {"undo one.1", "undo two.1", "undo p.2", "undo p.1"}) {
    CHECK(engine.world.journal.count(undone) == 1);
  }
}

TEST_CASE("a child whose last undo is too large to be recorded is parked, and not reported") {
  EngineWorld engine;
  bool mended = false;
  engine.store_options.limits = {.batch_operations = 10, .batch_bytes = 1 << 20};
  engine.world.scripts["p"] = reports_of({"bad"});
  engine.world.scripts["bad"] = fails_in(2);
  engine.world.scripts["bad"].undo = [&mended](JobRun& run) {
    for (int i = 0; run.step == 1 && !mended && i < 20; ++i) {
      run.ctx.put_row("row" + std::to_string(i), "x");
    }
    return usual();
  };
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  const ProcedureId child{root.value + 1};
  for (int life = 0; life < 2; ++life) {
    REQUIRE(engine.describe(child).parked);
    CHECK(engine.executor().inspect().history(child)->back().outcome == Outcome::Kind::kFail);
    CHECK(engine.world.journal.count("do p.3") == 0);
    engine.crash_and_open();
    engine.run();
  }
  mended = true;
  REQUIRE(engine.executor().operate().retry_now(child, kNote).to_string() == "OK");
  engine.run();
  CHECK(engine.result(root).status.ok());
  CHECK(engine.world.journal.count("saw ROLLEDBACK FAILED_PRECONDITION: no '';") == 1);
}

TEST_CASE(
    "a child beyond its point of no return whose failure is reported is parked and ended alone") {
  EngineWorld engine;
  engine.world.scripts["p"] = {.run = [](JobRun& run) {
    if (run.step == 2) {
      run.ctx.spawn(CommittingJob(run.world, "m"), {.on_failure = OnFailure::kReport});
    }
    return usual();
  }};
  engine.world.scripts["m"] = {.steps = 5, .run = [](JobRun& run) {
                                 return run.step == 4 ? std::optional(Say::fail("no")) : usual();
                               }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  if (GENERATE(false, true)) engine.crash_and_open();
  const ProcedureId child{root.value + 1};
  REQUIRE(engine.describe(child).parked);
  CHECK(engine.executor().abort(root).code() == StatusCode::kFailedPrecondition);
  const bool skip = GENERATE(false, true);
  REQUIRE((skip ? engine.executor().operate().skip_step(child, kNote)
                : engine.executor().operate().fail_and_roll_back(child, kNote))
              .to_string() == "OK");
  if (GENERATE(false, true)) engine.crash_and_open();
  engine.run();
  CHECK(engine.result(root).status.ok());
  CHECK(engine.world.journal.count("do m.5") == (skip ? 1 : 0));
}

// "m" is a child of "p", and both leave early. "m" leaves before "h" fails. "p" leaves while the
// 400 members below "h" leave; 69 others leave with "p", so that the rows of all 70 are deleted at
// once.
TEST_CASE("a crash never leaves a member without its parent while a failed child of others ends") {
  const int visits = GENERATE(0, 1, 2);  // of the parent of "p" after the end of "h"
  bool h_failed = false;
  std::size_t commits_of_failure = 0;
  const auto play = [&](EngineWorld& engine, std::size_t crash) {
    auto& scripts = engine.world.scripts;
    scripts["leaf"] = scripts["m"] = {.steps = 1};
    const auto spawn_leaves = [](JobRun& run, int count) {
      for (int i = 0; i < count; ++i) run.ctx.spawn(FinalJob(run.world, "leaf"));
    };
    scripts["p"] = {.run = [](JobRun& run) {
      if (run.step == 2) run.ctx.spawn(FinalJob(run.world, "m"));
      return usual();
    }};
    scripts["q"] = {.run = [&, left = visits](JobRun& run) mutable -> std::optional<Outcome> {
      if (run.step == 2) {
        run.ctx.spawn(FinalJob(run.world, "p"));
        spawn_leaves(run, 69);
      }
      if (run.step == 3 && (!h_failed || left-- > 0)) return Say::again();
      return usual();
    }};
    scripts["h"] = {.run = [&](JobRun& run) -> std::optional<Outcome> {
      if (run.step == 2) spawn_leaves(run, 400);
      if (run.step != 3) return usual();
      h_failed = true;
      commits_of_failure = engine.faults().commits();
      return Say::fail("no");
    }};
    scripts["root"] = {.steps = 4, .run = [](JobRun& run) {
                         if (run.step == 2) {
                           run.ctx.spawn(FinalJob(run.world, "q"));
                           run.ctx.spawn(Job(run.world, "h"), {.on_failure = OnFailure::kReport});
                         }
                         return usual();
                       }};
    engine.open();
    if (crash != 0) engine.faults().crash_before(crash);
    const ProcedureId root = engine.submit("root");
    engine.run();
    return root;
  };
  std::size_t from = 0;
  std::size_t to = 0;
  {
    EngineWorld engine;
    CHECK(engine.result(play(engine, 0)).status.ok());
    from = commits_of_failure + 1;
    to = engine.faults().commits();
  }
  REQUIRE(from < to);
  for (std::size_t crash = from; crash <= to; ++crash) {
    INFO("a crash before commit " << crash);
    h_failed = false;
    EngineWorld engine;
    const ProcedureId root = play(engine, crash);
    h_failed = true;
    engine.crash_and_open();
    engine.run();
    CHECK(engine.result(root).status.ok());
  }
}

}  // namespace pv2::testing::report_test
