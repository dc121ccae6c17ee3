// SPDX-License-Identifier: Apache-2.0
//
// Every verb in every phase of a procedure: each is answered with the code in the table below, and
// the procedure comes to its end afterwards.

#include <map>
#include <sstream>

#include "support/repair_orders.h"

namespace pv2::testing::every_verb_test {
namespace {

using namespace std::chrono_literals;

const LockSet kOrders = LockSet().table("shop", "orders", LockMode::kExclusive);

std::optional<Outcome> asks(JobRun& run) {
  const auto* value = run.ctx.await<std::string>([&run](auto asked) { run.world.ask(asked); });
  return value == nullptr ? std::optional(Say::wait()) : usual();
}

/// A world in which a procedure stands in some phase.
struct Stage {
  EngineWorld engine;
  bool mended = false;
  bool unknown_type = false;
  ProcedureId id{};

  ProcedureId submit(const std::string& name) {
    return id = engine.submit(name, {.nonce = {1, 1}});
  }
  void script(JobScript script) { engine.world.scripts["a"] = std::move(script); }
  // Runs a job "a" with that script.
  void play(JobScript a) {
    script(std::move(a));
    engine.open();
    submit("a");
    engine.run();
  }
};

// A type that a later life does not know.
struct OtherJobKind : JobKind {
  static constexpr std::string_view kType = "test.OtherJob";
};
using OtherJob = ScriptedJob<OtherJobKind>;

using Prepare = void (*)(Stage&);
const std::vector<std::pair<std::string, Prepare>> kPhases{
    {"none",
     [](Stage& stage) {
       stage.script({});
       stage.engine.open();
     }},
    {"never",
     [](Stage& stage) {
       stage.script({});
       stage.engine.open();
       stage.id = {4711};
     }},
    {"queued",
     [](Stage& stage) {
       stage.script({});
       stage.engine.open();
       stage.submit("a");
     }},
    {"committing",
     [](Stage& stage) {
       stage.script({});
       stage.engine.open();
       stage.submit("a");
       stage.engine.faults().hold_commit(stage.engine.faults().commits() + 1);
       stage.engine.run();
     }},
    {"delayed",
     [](Stage& stage) {
       stage.script({});
       stage.engine.open();
       stage.id = stage.engine.submit("a", {.nonce = {1, 1}, .delay = 1h});
       stage.engine.run();
     }},
    {"lock",
     [](Stage& stage) {
       stage.engine.world.scripts["holder"] = {.run = asks, .locks = kOrders};
       stage.script({.locks = kOrders});
       stage.engine.open();
       stage.engine.submit("holder");
       stage.engine.run();
       stage.submit("a");
       stage.engine.run();
     }},
    {"children",
     [](Stage& stage) {
       stage.engine.world.scripts["child"] = {.run = asks};
       stage.play({.children = {"child"}});
     }},
    {"child",
     [](Stage& stage) {
       stage.engine.world.scripts["child"] = {.run = asks};
       stage.play({.children = {"child"}});
       stage.id = {stage.id.value + 1};
     }},
    {"timer",
     [](Stage& stage) {
       stage.play({.run = [](JobRun& run) {
         return run.ctx.timed_out() ? usual() : std::optional(Say::wait_for(1h));
       }});
     }},
    {"signal",
     [](Stage& stage) {
       stage.play({.run = [](JobRun& run) {
         return run.ctx.signal("go") != nullptr ? usual() : std::optional(Say::wait());
       }});
     }},
    {"value", [](Stage& stage) { stage.play({.run = asks}); }},
    {"back-off",
     [](Stage& stage) {
       stage.play({.run = [](JobRun& run) {
         return run.ctx.attempt() > 2 ? usual() : std::optional(Say::retry("busy"));
       }});
     }},
    {"out of attempts",
     [](Stage& stage) {
       stage.engine.retry.max_attempts = 1;
       stage.play({.run = [&stage](JobRun&) {
         return stage.mended ? usual() : std::optional(Say::retry("busy"));
       }});
     }},
    {"undone, waits",
     [](Stage& stage) {
       stage.play({.run = [](JobRun&) { return std::optional(Say::fail("no")); }, .undo = asks});
     }},
    {"undone, back-off",
     [](Stage& stage) {
       stage.play({.run = [](JobRun&) { return std::optional(Say::fail("no")); },
                   .undo =
                       [](JobRun& run) {
                         return run.ctx.attempt() > 2 ? usual() : std::optional(Say::retry("busy"));
                       }});
     }},
    {"parked undo", [](Stage& stage) { stage.play(stuck(stage.mended)); }},
    {"beyond return",
     [](Stage& stage) {
       stage.script({.steps = 4, .run = [&stage](JobRun& run) {
                       const bool fails = run.step == 4 && !stage.mended;
                       return fails ? std::optional(Say::fail("no")) : usual();
                     }});
       stage.engine.open();
       stage.id = stage.engine.submit<CommittingJob>("a", {.nonce = {1, 1}});
       stage.engine.run();
     }},
    {"quarantined",
     [](Stage& stage) {
       stage.script({.run = asks});
       auto options = stage.engine.options();
       options.registry.add<OtherJob>(stage.engine.world);
       stage.engine.open(std::move(options));
       stage.id = stage.engine.submit<OtherJob>("a", {.nonce = {1, 1}});
       stage.engine.run();
       stage.unknown_type = true;
       stage.engine.crash_and_open();
       stage.engine.run();
     }},
    {"succeeded", [](Stage& stage) { stage.play({}); }},
    {"undone",
     [](Stage& stage) {
       stage.play({.run = [](JobRun&) { return std::optional(Say::fail("no")); }});
     }},
    {"forgotten",
     [](Stage& stage) {
       stage.play({});
       REQUIRE(stage.engine.executor().acknowledge(stage.id).ok());
     }},
};

// The answer of an asynchronous verb when nothing more can run unless time passes.
template <class Call>
StatusCode answer_of(Stage& stage, Call&& call) {
  const auto answer = std::make_shared<std::optional<Status>>();
  call([answer](const auto& result) {
    if constexpr (std::is_same_v<std::decay_t<decltype(result)>, Status>) {
      answer->emplace(result);
    } else {
      answer->emplace(result.status());
    }
  });
  stage.engine.run();
  stage.engine.faults().release();
  stage.engine.run();
  // None of these verbs may stay unanswered; only async().wait() may.
  if (!answer->has_value()) return StatusCode::kUnknownOutcome;
  return (*answer)->code();
}

using Verb = StatusCode (*)(Stage&);
template <RepairVerb kVerb>
StatusCode repair(Stage& stage) {
  if (kVerb == RepairVerb::kRetryNow) stage.mended = true;
  return answer_of(stage, [&](auto done) {
    stage.engine.executor().operate().order(stage.id, kVerb, kNote, done);
  });
}
template <RepairVerb kVerb>
StatusCode preview(Stage& stage) {
  return stage.engine.executor().operate().preview(stage.id, kVerb).status().code();
}
const std::vector<std::pair<std::string, Verb>> kVerbs{
    {"submit",
     [](Stage& stage) {
       return answer_of(stage, [&](auto done) {
         stage.engine.executor().async().submit(Job(stage.engine.world, "a"), {.nonce = {1, 1}},
                                                done);
       });
     }},
    {"wait",
     [](Stage& stage) { return stage.engine.executor().wait(stage.id, 0ms).status().code(); }},
    {"abort",
     [](Stage& stage) {
       return answer_of(stage, [&](auto done) {
         stage.engine.executor().async().abort(stage.id, {.reason = "late", .who = "anna"}, done);
       });
     }},
    {"signal",
     [](Stage& stage) {
       return answer_of(stage, [&](auto done) {
         stage.engine.executor().async().signal(stage.id, "other", "", done);
       });
     }},
    {"acknowledge",
     [](Stage& stage) {
       return answer_of(
           stage, [&](auto done) { stage.engine.executor().async().acknowledge(stage.id, done); });
     }},
    {"retry", repair<RepairVerb::kRetryNow>},
    {"skip", repair<RepairVerb::kSkipStep>},
    {"back", repair<RepairVerb::kFailAndRollBack>},
    {"bypass", repair<RepairVerb::kBypass>},
    {"p.retry", preview<RepairVerb::kRetryNow>},
    {"p.skip", preview<RepairVerb::kSkipStep>},
    {"p.back", preview<RepairVerb::kFailAndRollBack>},
    {"p.bypass", preview<RepairVerb::kBypass>},
    {"explain",
     [](Stage& stage) {
       return stage.engine.executor().inspect().explain(stage.id).status().code();
     }},
    {"describe",
     [](Stage& stage) {
       return stage.engine.executor().inspect().describe(stage.id).status().code();
     }},
    {"history",
     [](Stage& stage) {
       return stage.engine.executor().inspect().history(stage.id).status().code();
     }},
    {"audit",
     [](Stage& stage) {
       return stage.engine.executor().operate().audit(stage.id).status().code();
     }},
    {"list",
     [](Stage& stage) {
       const auto page = stage.engine.executor().inspect().list({.root = stage.id}, {}, 10);
       return page.procedures.empty() ? StatusCode::kNotFound : StatusCode::kOk;
     }},
};

std::string short_name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kFailedPrecondition:
      return "not";
    case StatusCode::kNotFound:
      return "none";
    case StatusCode::kExpired:
      return "gone";
    case StatusCode::kInvalidArgument:
      return "bad";
    case StatusCode::kDeadlineExceeded:
      return "late";
    case StatusCode::kUnavailable:
      return "later";
    case StatusCode::kKeyReused:
      return "used";
    default:
      return std::string(to_string(code));
  }
}

// Answers and signals what waits, retries what is parked, bypasses what is quarantined.
void come_to_the_end(Stage& stage) {
  EngineWorld& engine = stage.engine;
  stage.mended = true;
  for (int i = 0; i < 60 && engine.executor().inspect().live_procedures() != 0; ++i) {
    engine.run();
    if (engine.world.answer_one("yes")) continue;
    for (const ProcedureInfo& info : engine.executor().inspect().list()) {
      (void)engine.executor().signal(info.id, "go");
      if (info.parked) (void)engine.executor().operate().retry_now(info.root, kNote);
      if (info.quarantined) (void)engine.executor().operate().bypass(info.root, kNote);
    }
    engine.clock->advance(10min);
  }
  REQUIRE(engine.executor().inspect().live_procedures() == 0);
  CHECK(engine.executor().inspect().locks().empty());
  CHECK(engine.executor().health().ok());
}

// clang-format off
// ok, not: FAILED_PRECONDITION, none: NOT_FOUND, gone: EXPIRED, bad: INVALID_ARGUMENT, late:
// DEADLINE_EXCEEDED, later: UNAVAILABLE, used: KEY_REUSED. The columns: submit under its nonce,
// wait, abort, signal, acknowledge, the four orders (retry, skip, back, bypass), their previews,
// explain, describe, history, audit, list.
const std::string_view kTable = R"(
none: ok none none none none none none none none none none none none none none none none none
never: ok none none none none none none none none none none none none none none none none none
queued: ok late ok ok not not not ok not not not ok not ok ok ok ok ok
committing: ok late ok ok not later not ok not later not ok not ok ok ok ok ok
delayed: ok late ok ok not ok not ok not ok not ok not ok ok ok ok ok
lock: ok late ok ok not not not ok not not not ok not ok ok ok ok ok
children: ok late ok ok not not not ok not not not ok not ok ok ok ok ok
child: ok bad bad ok not not not ok not not not ok not ok ok ok ok none
timer: ok late ok ok not ok not ok not ok not ok not ok ok ok ok ok
signal: ok late ok ok not not not ok not not not ok not ok ok ok ok ok
value: ok late ok ok not not not ok not not not ok not ok ok ok ok ok
back-off: ok late ok ok not ok not ok not ok not ok not ok ok ok ok ok
out of attempts: ok late ok ok not ok ok ok ok ok ok ok ok ok ok ok ok ok
undone, waits: ok late not ok not not not not ok not not not ok ok ok ok ok ok
undone, back-off: ok late not ok not ok not not ok ok not not ok ok ok ok ok ok
parked undo: ok late not ok not ok ok not ok ok ok not ok ok ok ok ok ok
beyond return: used late not ok not ok ok ok ok ok ok ok ok ok ok ok ok ok
quarantined: used late not ok not not not not ok not not not ok ok ok ok ok ok
succeeded: ok ok not not ok not not not not not not not not ok none ok ok none
undone: ok ok not not ok not not not not not not not not ok none ok ok none
forgotten: ok gone gone gone gone gone gone gone gone gone gone gone gone none none gone gone none
)";
// clang-format on

}  // namespace

TEST_CASE("every verb is answered in every phase, and the procedure comes to its end") {
  std::string table = "\n";
  for (const auto& [phase, prepare] : kPhases) {
    std::string row = phase + ":";
    for (const auto& [name, verb] : kVerbs) {
      INFO(name << " of a procedure in phase " << phase);
      Stage stage;
      prepare(stage);
      const StatusCode code = verb(stage);
      row += " " + short_name(code);
      stage.engine.faults().release();
      come_to_the_end(stage);
    }
    table += row + "\n";
  }
  CHECK(table == kTable);
}

}  // namespace pv2::testing::every_verb_test
