// SPDX-License-Identifier: Apache-2.0
//
// A call of the host that finds no memory throws, has no effect, and the engine goes on; an order
// with a nonce has an answer instead. Each request for memory that a call makes before it reaches
// the store fails in turn. What fails within the store, or while locks are asked for, ends the
// process (docs/operations.md, "Limits"). With a sanitizer these tests are left out, like those of
// the live table.

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/engine_world.h"
#include "support/one_failure.h"
#include "support/own_malloc.h"
#include "support/repair_orders.h"
#include "support/wrapped_store.h"

#if !PV2_HAS_OWN_MALLOC

namespace pv2::testing::host_call_no_memory_test {
namespace {

using namespace std::chrono_literals;

const std::string kLong(300, 'x');

// From the first commit on no request for memory fails.
class SparedStore final : public WrappedStore {
 public:
  using WrappedStore::WrappedStore;
  CommitAnswer commit_all(CommitList& requests) override {
    OneFailure::end();
    return WrappedStore::commit_all(requests);
  }
  CommitAnswer queue_all(CommitList& requests) override {
    OneFailure::end();
    return WrappedStore::queue_all(requests);
  }
};

// Step 1 waits for a signal "go", or for a day.
JobScript waiting() {
  return {.run = [](JobRun& run) {
    if (run.step != 1 || run.ctx.timed_out()) return usual();
    return run.ctx.signal("go") != nullptr ? usual() : std::optional(Say::wait_for(24h));
  }};
}

struct Machine : EngineWorld {
  Machine() {
    world.scripts["a"] = waiting();
    world.scripts["short"] = {.steps = 1};
    ExecutorOptions spared = options();
    spared.store = std::make_unique<SparedStore>(memory(disk));
    spared.max_signals = 1;
    spared.log = {};
    open(std::move(spared));
  }
  /// A job that waits.
  ProcedureId submit_waiting() {
    const ProcedureId id = submit("a");
    run();
    return id;
  }
};

// Makes `call` on one machine after another, and lets each of its requests for memory fail in turn.
// `check` is told whether the call threw. Returns how many requests failed.
int fail_each(const std::function<void(Machine&)>& prepare,
              const std::function<void(Machine&)>& call,
              const std::function<void(Machine&, bool)>& check) {
  for (int request = 0;; ++request) {
    CAPTURE(request);
    Machine machine;
    prepare(machine);
    bool has_thrown = false;
    bool has_failed = false;
    {
      const OneFailure failure(request);
      try {
        call(machine);
      } catch (const std::bad_alloc&) {
        has_thrown = true;
      }
      has_failed = OneFailure::has_happened() || has_thrown;
    }
    check(machine, has_thrown);
    if (!has_failed) return request;
    REQUIRE(request < 1000);
  }
}

}  // namespace

TEST_CASE("a submission that finds no memory starts nothing, and its nonce is free") {
  const bool is_delayed = GENERATE(false, true);
  SubmitOptions options{.nonce = {1, 1}};
  if (is_delayed) options.delay = 1h;
  std::vector<bool> accepted;
  const int failures = fail_each(
      [&](Machine&) { accepted.clear(); },
      [&](Machine& machine) {
        machine.executor().async().submit(
            Job(machine.world, "short"), options,
            [&](const Result<Submitted>& submitted) { accepted.push_back(submitted.ok()); });
      },
      [&](Machine& machine, bool has_thrown) {
        machine.run();
        CHECK(accepted.size() == (has_thrown ? 0 : 1));  // the host's own code may have thrown
        const bool was_accepted = !accepted.empty() && accepted.front();
        CHECK(machine.executor().inspect().live_procedures() ==
              (was_accepted && is_delayed ? 1 : 0));
        const auto again = machine.executor().submit(Job(machine.world, "short"), options);
        REQUIRE(again.ok());
        CHECK(again->replayed == was_accepted);
        machine.run_to_the_end();
        CHECK(machine.result(again->id).status.ok());
        CHECK(machine.world.journal.count("do short.1") == 1);
      });
  CHECK(failures > 5);
}

TEST_CASE("an abort that finds no memory has not been accepted, and the tree goes on") {
  ProcedureId id;
  const int failures = fail_each(
      [&](Machine& machine) {
        machine.world.scripts["a"].steps = 5;
        id = machine.submit<CommittingJob>("a");
        machine.run();
      },
      [&](Machine& machine) {
        machine.executor().async().abort(id, {.reason = kLong, .who = kLong}, [](const Status&) {});
      },
      [&](Machine& machine, bool has_thrown) {
        machine.run();
        if (has_thrown) CHECK(machine.executor().signal(id, "go").ok());
        machine.run();
        CHECK(machine.result(id).status.ok() == has_thrown);
      });
  CHECK(failures > 5);
}

TEST_CASE("a signal that finds no memory does not count, and another one is taken") {
  ProcedureId id;
  const int failures = fail_each(
      [&](Machine& machine) { id = machine.submit_waiting(); },
      [&](Machine& machine) {
        machine.executor().async().signal(id, kLong.substr(0, 100), kLong, [](const Status&) {});
      },
      [&](Machine& machine, bool has_thrown) {
        machine.run();
        const Status sent = machine.executor().signal(id, "go");
        CHECK(sent.code() == (has_thrown ? StatusCode::kOk : StatusCode::kResourceExhausted));
        if (!has_thrown) return;  // the other signal is there, and max_signals is 1
        machine.run();
        CHECK(machine.result(id).status.ok());
      });
  CHECK(failures > 3);
}

TEST_CASE("an order that finds no memory is not carried out, and the procedure goes on") {
  ProcedureId id;
  const int failures = fail_each(
      [&](Machine& machine) { id = machine.submit_waiting(); },
      [&](Machine& machine) {
        machine.executor().operate().order(id, RepairVerb::kRetryNow, {.who = kLong, .why = kLong},
                                           [](const Status&) {});
      },
      [&](Machine& machine, bool has_thrown) {
        machine.run();
        CHECK(machine.executor().operate().audit(id)->size() == (has_thrown ? 0 : 1));
        machine.advance(25h);
        CHECK(machine.result(id).status.ok());
      });
  CHECK(failures > 5);
}

TEST_CASE("an order with a nonce that finds no memory is answered, and may be given again") {
  ProcedureId id;
  int answers = 0;
  const auto verb = GENERATE(RepairVerb::kRetryNow, RepairVerb::kFailAndRollBack);
  const auto give = [&](Machine& machine, std::optional<Result<Ordered>>& told) {
    machine.executor().operate().order_once({3, 3}, id, verb, {.who = kLong, .why = kLong},
                                            [&](Result<Ordered> answer) {
                                              ++answers;
                                              told.emplace(std::move(answer));
                                            });
  };
  std::optional<Result<Ordered>> first;
  const int failures = fail_each(
      [&](Machine& machine) {
        answers = 0;
        first.reset();
        id = machine.submit("a");
        machine.run();
      },
      [&](Machine& machine) { give(machine, first); },
      [&](Machine& machine, bool has_thrown) {
        machine.run();
        CHECK(first.has_value() == !has_thrown);
        const bool done = first && first->ok();
        std::optional<Result<Ordered>> second;
        give(machine, second);
        machine.run();
        REQUIRE(second.has_value());
        REQUIRE(second->ok());
        CHECK((*second)->replayed == done);
        CHECK(machine.executor().operate().audit(id)->size() == 1);
      });
  CHECK(failures > 5);
}

}  // namespace pv2::testing::host_call_no_memory_test

#endif
