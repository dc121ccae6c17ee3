// SPDX-License-Identifier: Apache-2.0
//
// A test of a user's own procedure, step by step. docs/testing.md shows parts of this file.

#include "pv2/testing/step_executor.h"

#include "support/catch.h"
#include "testing/shop.h"

namespace pv2::testing::step_executor_test {

using Order = PlaceOrder<Defect::kNone, true>;
using OrderToClosedStreet = PlaceOrder<Defect::kNone, false>;

TEST_CASE("an order, step by step, with a crash in the middle of a charge") {
  // [region step-by-step]
  Shop shop;  // outlives every crash
  StepExecutor steps([&](ProcedureRegistry& types) { types.add<Order>(shop); });
  const ProcedureId id = steps.submit(Order(shop, "o-42")).value();

  REQUIRE(steps.step());
  CHECK(shop.reserved.contains("o-42"));
  CHECK(steps.describe(id)->step_name == "CHARGE");

  REQUIRE(steps.step_and_crash());  // the money is taken, and nobody wrote it down
  CHECK(shop.money == 5);
  CHECK(steps.describe(id)->step_name == "CHARGE");

  REQUIRE(steps.step());  // it runs again, under the same key
  CHECK(shop.money == 5);
  CHECK_THAT(steps.describe(id)->fields, ContainsSubstring("parcel of o-42"));
  REQUIRE(steps.step());
  CHECK(steps.result(id)->result == "parcel of o-42");
  // [/region]
  CHECK(!steps.step());
}

TEST_CASE("an undo, step by step, with a crash after its record") {
  Shop shop;
  StepExecutor steps([&](ProcedureRegistry& types) { types.add<OrderToClosedStreet>(shop); });
  const ProcedureId id = steps.submit(OrderToClosedStreet(shop, "o-42")).value();

  while (steps.describe(id)->state != ProcedureState::kFailed) REQUIRE(steps.step());
  REQUIRE(steps.step());  // SHIP
  REQUIRE(steps.step_and_crash_after());
  CHECK(shop.money == 0);
  CHECK(shop.reserved.size() == 1);
  CHECK(steps.result(id).status().code() == StatusCode::kUnavailable);

  CHECK(steps.run_to_the_end().to_string() == "OK");
  CHECK(shop.reserved.empty());
  CHECK(steps.result(id)->state == ProcedureState::kRolledBack);
}

namespace {

enum class TeaStep { kBrew = 1, kPour = 2 };

// Waits for an hour, and counts cups in a row of the host.
class MakeTea final : public StateMachineProcedure<TeaStep> {
 public:
  static constexpr std::string_view kType = "kitchen.MakeTea";
  static constexpr auto kSteps =
      steps(step(TeaStep::kBrew, "BREW", kUndoable), step(TeaStep::kPour, "POUR", kUndoable));
  void fields(auto& /*f*/) {}
  Flow execute_from_state(TeaStep step, StepContext& ctx) override {
    if (step == TeaStep::kBrew && !ctx.timed_out()) return wait_for(std::chrono::hours(1));
    if (step == TeaStep::kBrew) return next(TeaStep::kPour);
    ctx.put_row("cups", "1");
    return done();
  }
};

}  // namespace

TEST_CASE("time passes only when the test says so, and rows can be read in between") {
  StepExecutor steps([](ProcedureRegistry& types) { types.add<MakeTea>(); });
  const ProcedureId id = steps.submit(MakeTea()).value();

  CHECK(steps.run() == 1);
  steps.advance(std::chrono::minutes(59));
  CHECK(!steps.step());
  steps.crash();
  steps.advance(std::chrono::minutes(1));
  CHECK(steps.step());
  CHECK(steps.describe(id)->step_name == "POUR");
  CHECK(steps.row("cups") == std::nullopt);
  CHECK(steps.step());
  CHECK(steps.row("cups") == "1");
}

TEST_CASE("a procedure that does not end is reported, and so is a store that cannot be opened") {
  StepExecutor steps([](ProcedureRegistry& types) { types.add<MakeTea>(); });
  REQUIRE(steps.submit(MakeTea()).ok());
  const Status stuck = steps.run_to_the_end(Duration(1));
  CHECK(stuck.code() == StatusCode::kDeadlineExceeded);
  CHECK_THAT(std::string(stuck.message()), ContainsSubstring("kitchen.MakeTea"));

  StepExecutor twice([](ProcedureRegistry& types) { types.add<MakeTea>().add<MakeTea>(); });
  CHECK(!twice.opened().ok());
}

}  // namespace pv2::testing::step_executor_test
