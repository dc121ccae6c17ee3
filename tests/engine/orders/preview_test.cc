// SPDX-License-Identifier: Apache-2.0
//
// A preview says what its order then does. Over random trees, stopped anywhere, it says which steps
// are undone and which are not, which undo is skipped or retried, and which locks are given up.

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/random_job_tree.h"
#include "support/repair_orders.h"

namespace pv2::testing::preview_test {
namespace {

using namespace std::chrono_literals;
using Steps = std::set<std::string>;  // "m3.2": step 2 of that member

/// What the lines of a preview promise.
struct Promise {
  Steps undone;
  Steps not_undone;
  std::set<std::string> locks;
};

std::string number_of(std::string_view step) {
  const std::vector<std::string_view> names{"ONE", "TWO", "THREE", "FOUR", "FIVE"};
  const auto at = std::find(names.begin(), names.end(), step);
  REQUIRE(at != names.end());
  return std::to_string(at - names.begin() + 1);
}

std::map<std::uint64_t, std::string> names_by_id(const ProcedureExecutor& executor) {
  std::map<std::uint64_t, std::string> names;
  for (const ProcedureInfo& info :
       executor.inspect().list({.with_fields = true}, {}, 100).procedures) {
    const std::size_t at = info.fields.find("\"m");
    REQUIRE(at != std::string::npos);
    names[info.id.value] = info.fields.substr(at + 1, info.fields.find('"', at + 1) - at - 1);
  }
  return names;
}

std::string between(const std::string& line, std::string_view from, std::string_view to) {
  const std::size_t begin = line.find(from);
  if (begin == std::string::npos) return {};
  const std::size_t end = line.find(to, begin + from.size());
  if (end == std::string::npos) return {};
  return line.substr(begin + from.size(), end - begin - from.size());
}

Promise promise_of(const std::vector<std::string>& lines,
                   const std::map<std::uint64_t, std::string>& names) {
  Promise promise;
  for (const std::string& line : lines) {
    const std::string lock = between(line, " gives up its lock on ", ";");
    if (!lock.empty()) promise.locks.insert(lock);
    std::string steps = between(line, ") did ", ", which is ");
    if (steps.empty()) steps = between(line, ") may have begun ", ", which is ");
    if (steps.empty()) continue;
    const bool undone = line.find("which is undone") != std::string::npos;
    const std::string& name = names.at(std::stoull(line.substr(std::string("procedure ").size())));
    for (std::size_t at = 0; at < steps.size();) {
      const std::size_t end = std::min(steps.find(", ", at), steps.size());
      (undone ? promise.undone : promise.not_undone)
          .insert(name + "." + number_of(steps.substr(at, end - at)));
      at = end + 2;
    }
  }
  return promise;
}

Steps entries_since(const EngineWorld& engine, std::size_t from, std::string_view prefix) {
  Steps steps;
  const Entries journal = engine.journal();
  for (std::size_t i = from; i < journal.size(); ++i) {
    if (journal[i].starts_with(prefix)) steps.insert(journal[i].substr(prefix.size()));
  }
  return steps;
}

std::set<std::string> exclusive_locks(const ProcedureExecutor& executor) {
  std::set<std::string> keys;
  for (const LockInfo& lock : executor.inspect().locks()) {
    for (const LockInfo::Party& holder : lock.holders) {
      if (holder.mode == LockMode::kExclusive) keys.insert(to_string(lock.key));
    }
  }
  return keys;
}

// Answers what waits, retries what is parked, and aborts a tree that does not end.
void run_on(EngineWorld& engine, ProcedureId root) {
  for (int i = 0; i < 60 && engine.executor().inspect().live_procedures() != 0; ++i) {
    engine.run();
    if (engine.world.answer_one("yes")) continue;
    if (i > 8 && engine.executor().abort(root, {.reason = "it does not end"}).ok()) {
      engine.run();
    }
    if (!engine.executor().operate().retry_now(root, kNote).ok()) engine.clock->advance(10min);
  }
}

void check_order(EngineWorld& engine, ProcedureId root, RepairVerb verb) {
  ProcedureExecutor& executor = engine.executor();
  const auto names = names_by_id(executor);
  const auto lines = executor.operate().preview(root, verb);
  const std::set<std::string> locks = exclusive_locks(executor);
  const std::size_t before = engine.journal().size();
  const Steps undone_before = entries_since(engine, 0, "undo ");
  const Status ordered = executor.operate().order(root, verb, kNote);
  REQUIRE(ordered.code() == lines.status().code());
  if (!ordered.ok()) return;
  std::string text;
  for (const std::string& line : *lines) text += "\n" + line;
  INFO(to_string(verb) << " promises:" << text);
  const Promise promise = promise_of(*lines, names);

  run_on(engine, root);
  REQUIRE(executor.inspect().live_procedures() == 0);
  const Steps undone = entries_since(engine, before, "undo ");
  const Steps called = entries_since(engine, before, "call ");
  switch (verb) {
    case RepairVerb::kFailAndRollBack:
      REQUIRE(undone == promise.undone);
      break;
    case RepairVerb::kBypass: {
      const bool waits = text.find("the order waits until") != std::string::npos;
      if (waits) break;  // running steps end first and may change some of it
      for (const std::string& step : promise.not_undone) {
        INFO(step);
        REQUIRE_FALSE(called.contains(step));
      }
      // If only the domain of a child ends, the other members go on.
      if (!lines->back().starts_with("procedure " + std::to_string(root.value) + " ")) break;
      REQUIRE(called.empty());
      REQUIRE(promise.locks == locks);
      Steps left = entries_since(engine, 0, "run ");
      for (const std::string& step : undone_before) left.erase(step);
      for (const std::string& step : promise.not_undone) {
        INFO(step);
        REQUIRE(left.contains(step));
      }
      break;
    }
    case RepairVerb::kSkipStep:
      for (const std::string& step : promise.not_undone) {
        INFO(step);
        REQUIRE_FALSE(called.contains(step));
      }
      break;
    case RepairVerb::kRetryNow:
      break;
  }
}

}  // namespace

TEST_CASE("a preview promises what the order then does, wherever a tree stands") {
  const auto verb = GENERATE(RepairVerb::kFailAndRollBack, RepairVerb::kBypass,
                             RepairVerb::kSkipStep, RepairVerb::kRetryNow);
  const std::uint32_t attempts = GENERATE(0U, 1U);  // 1: a failed attempt parks at once
  std::size_t carried_out = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    const Tree tree = random_tree(random);
    for (const std::size_t steps : {1U, 2U, 3U, 5U, 8U, 12U, 100U}) {
      EngineWorld engine;
      engine.retry.jitter_percent = 0;
      engine.retry.max_attempts = attempts;
      write_scripts(tree, engine.world);
      engine.open();
      const ProcedureId root = engine.submit(name_of(0));
      engine.executor().run_until_idle(steps);
      if (engine.executor().inspect().live_procedures() == 0) break;
      if (random.below(3) == 0) (void)engine.executor().abort(root, {.reason = "late"});
      if (random.below(2) == 0) engine.executor().run_until_idle(random.below(4));
      if (engine.executor().inspect().live_procedures() == 0) continue;
      INFO("seed " << seed << ", after " << steps << " steps" << words(tree));
      const std::size_t audited = engine.executor().operate().audit(root)->size();
      check_order(engine, root, verb);
      const auto audit = engine.executor().operate().audit(root);
      carried_out += audit.ok() && audit->size() > audited ? 1 : 0;
    }
  }
  CHECK(carried_out >= 10);
}

TEST_CASE("a preview names as undone the step of a child that is out of attempts") {
  EngineWorld engine;
  engine.retry.max_attempts = 1;
  engine.world.scripts["p"] = {.children = {"stuck"}};
  engine.world.scripts["stuck"] = {
      .steps = 1, .run = [](JobRun&) { return std::optional(Say::retry("busy")); }};
  engine.open();
  const ProcedureId root = engine.submit("p");
  engine.run();
  REQUIRE(engine.describe({root.value + 1}).parked);

  const std::string lines =
      joined(engine.executor().operate().preview(root, RepairVerb::kFailAndRollBack));
  CHECK_THAT(lines, ContainsSubstring("procedure " + std::to_string(root.value + 1) +
                                      " (test.Job) may have begun ONE, which is undone"));
  REQUIRE(engine.executor().operate().fail_and_roll_back(root, kNote).ok());
  engine.run();
  CHECK(engine.world.journal.count("undo stuck.1") == 1);
}

}  // namespace pv2::testing::preview_test
