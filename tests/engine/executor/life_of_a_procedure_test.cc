// SPDX-License-Identifier: Apache-2.0
//
// One procedure from submit to its result: the program behind docs/life-of-a-procedure.md, which
// shows the regions marked here and compares them. The story is slow on purpose; each behaviour has
// a test of its own elsewhere. Everything runs on this thread, and the disk is as slow as the story
// needs it.

#include <pv2/engine/async_executor.h>
#include <pv2/engine/executor_options.h>
#include <pv2/engine/inspection.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/engine/procedure_info.h>
#include <pv2/engine/procedure_registry.h>
#include <pv2/engine/state_machine_procedure.h>
#include <pv2/store/memory_procedure_store.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pv2/testing/fault_store.h"
#include "support/catch.h"

namespace {

using namespace pv2;
using pv2::testing::FaultStore;

constexpr ResourceClass kOrders{64};  // the first number that hosts may use

// [region shop]
/// The world outside. It outlives every crash, and it does nothing twice under one key.
struct Shop {
  std::vector<std::string> effects;
  std::set<std::string> keys;
  std::optional<Completion<Result<std::string>>> bank;  // answers when the story wants it
  bool carrier_strikes = false;

  void once(const std::string& key, const std::string& effect) {
    if (keys.insert(key).second) effects.push_back(effect);
  }
};
// [/region]

// [region procedure]
enum class OrderStep { kReserve = 1, kCharge = 2, kShip = 3 };  // stored: never reused

class PlaceOrder final : public StateMachineProcedure<OrderStep> {
 public:
  static constexpr std::string_view kType = "shop.PlaceOrder";  // stored: survives renames
  static constexpr auto kSteps = steps(step(OrderStep::kReserve, "RESERVE", kUndoable),
                                       step(OrderStep::kCharge, "CHARGE", kUndoable),
                                       step(OrderStep::kShip, "SHIP", kPointOfNoReturn));

  explicit PlaceOrder(Shop& shop, std::string order = {}) : shop_(shop), order_(std::move(order)) {}

  void fields(auto& f) {
    f.arg(1, "order", order_);
    f(2, "receipt", receipt_);
  }
  LockSet locks() const override { return LockSet().key({kOrders, order_}, LockMode::kExclusive); }
  Flow execute_from_state(OrderStep step, StepContext& ctx) override;
  Flow rollback_state(OrderStep step, StepContext& ctx) override;

 private:
  Shop& shop_;           // a dependency: given again after a crash
  std::string order_;    // an argument: written once
  std::string receipt_;  // state: written with each step
};
// [/region]

// [region execute]
PlaceOrder::Flow PlaceOrder::execute_from_state(OrderStep step, StepContext& ctx) {
  switch (step) {
    case OrderStep::kReserve:
      shop_.once(ctx.effect_key(), "reserve " + order_);
      return next(OrderStep::kCharge);
    case OrderStep::kCharge: {
      const auto* answer = ctx.await<Result<std::string>>([&](auto completion) {
        shop_.once(ctx.effect_key(), "charge " + order_);
        shop_.bank = std::move(completion);
      });
      if (answer == nullptr) return wait();
      if (!answer->ok()) return fail(answer->status());
      receipt_ = **answer;
      return next(OrderStep::kShip);
    }
    case OrderStep::kShip:
      if (shop_.carrier_strikes) return fail({StatusCode::kAborted, "no carrier"});
      shop_.once(ctx.effect_key(), "ship " + order_);
      return done("shipped against " + receipt_);
  }
  return fail({StatusCode::kInternal, "no such step"});
}
// [/region]

// [region rollback]
PlaceOrder::Flow PlaceOrder::rollback_state(OrderStep step, StepContext& ctx) {
  shop_.once(ctx.effect_key(), (step == OrderStep::kCharge ? "refund " : "release ") + order_);
  return undone();
}
// [/region]

// What outlives the executor.
struct Story {
  Shop shop;
  std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>();
  std::unique_ptr<ProcedureExecutor> executor;
  FaultStore* store = nullptr;  // in the executor

  void open() {
    executor.reset();
    auto faults = std::make_unique<FaultStore>(memory(disk));
    store = faults.get();
    // [region open]
    ProcedureRegistry types;
    types.add<PlaceOrder>(shop);
    auto opened = ProcedureExecutor::open({.store = std::move(faults),
                                           .registry = types,
                                           .workers = 0,  // this thread runs everything
                                           .clock = std::make_shared<ManualClock>(),
                                           .log = {}});  // crashes are no news here
    // [/region]
    REQUIRE(opened.status().to_string() == "OK");
    executor = *std::move(opened);
    executor->start();
  }
  // The process dies: commits that the store has not made durable are lost.
  void crash() {
    store->crash_before(store->commits() + 1, FaultStore::AfterCrash::kFail);
    open();
  }
};

using ShopEffects = std::vector<std::string>;

}  // namespace

TEST_CASE("the life of a procedure from submit to its result") {
  Story story;
  story.open();
  Shop& shop = story.shop;
  ProcedureExecutor* const executor = story.executor.get();
  FaultStore& store = *story.store;
  const std::size_t before = store.commits();

  // [region submit]
  std::vector<Submitted> answers;
  const auto answer = [&](Result<Submitted> result) { answers.push_back(*result); };

  store.hold_commit(store.commits() + 1);  // a slow disk
  executor->async().submit(PlaceOrder(shop, "o-42"), {.nonce = {7, 1}}, answer);
  executor->async().submit(PlaceOrder(shop, "o-42"), {.nonce = {7, 1}}, answer);  // impatience
  executor->run_until_idle();

  CHECK(store.held() == 1);     // one insert
  CHECK(answers.empty());       // no id that is not durable
  CHECK(shop.effects.empty());  // and no step before its record
  // [/region]

  // [region inserted]
  store.release();
  executor->run_until_idle(1);  // at most one step

  REQUIRE(answers.size() == 2);
  CHECK(answers[0].id == answers[1].id);
  CHECK(answers[1].replayed);
  // [/region]
  const ProcedureId id = answers[0].id;

  // [region first_step]
  const ProcedureInfo info = *executor->inspect().describe(id);
  CHECK(shop.effects == ShopEffects{"reserve o-42"});
  CHECK(info.state == ProcedureState::kRunnable);
  CHECK(info.step_name == "CHARGE");  // the one to come
  CHECK(info.holds_locks);
  CHECK(info.history.size() == 1);
  // [/region]

  // [region wait]
  executor->run_until_idle();  // CHARGE asks the bank and answers wait()

  CHECK(shop.effects.back() == "charge o-42");
  CHECK(store.commits() - before == 2);  // the insert and RESERVE: this wait needs no record
  // [/region]

  // [region wake]
  store.hold_commit(store.commits() + 1);
  (*shop.bank)(std::string("receipt 7"));  // from any thread
  executor->run_until_idle();

  // CHARGE ran, but its record is not durable, so SHIP has not begun.
  CHECK(executor->inspect().describe(id)->step_name == "CHARGE");
  CHECK(shop.effects.back() == "charge o-42");
  store.release();
  // [/region]

  // [region result]
  executor->run_until_idle();
  const ProcedureResult result = *executor->wait(id);

  CHECK(result.state == ProcedureState::kSuccess);
  CHECK(result.result == "shipped against receipt 7");
  CHECK(store.commits() - before == 4);  // three steps, four records
  CHECK(executor->inspect().locks().empty());
  // [/region]

  // [region acknowledge]
  auto late = executor->submit(PlaceOrder(shop, "o-42"), {.nonce = {7, 1}});
  CHECK((late->id == id && late->replayed));  // kept until it is acknowledged

  CHECK(executor->acknowledge(id).ok());
  CHECK(executor->wait(id).status().code() == StatusCode::kExpired);
  // [/region]
}

TEST_CASE("a process that dies in the middle of a step runs that step again") {
  Story story;
  story.open();
  Shop& shop = story.shop;

  // [region crash]
  const ProcedureId id = story.executor->submit(PlaceOrder(shop, "o-43"))->id;
  story.executor->run_until_idle();
  CHECK(shop.effects == ShopEffects{"reserve o-43", "charge o-43"});  // CHARGE waits for the bank

  story.crash();
  CHECK(story.executor->inspect().describe(id)->step_name == "CHARGE");
  CHECK(story.executor->inspect().describe(id)->holds_locks);

  story.executor->run_until_idle();  // CHARGE again, under the same key: the bank does not
  CHECK(shop.effects == ShopEffects{"reserve o-43", "charge o-43"});

  (*shop.bank)(std::string("receipt 8"));
  story.executor->run_until_idle();
  CHECK(story.executor->wait(id)->result == "shipped against receipt 8");
  // [/region]
}

TEST_CASE("a procedure that fails is undone from its last step to its first") {
  Story story;
  story.open();
  Shop& shop = story.shop;

  // [region undo]
  shop.carrier_strikes = true;
  const ProcedureId id = story.executor->submit(PlaceOrder(shop, "o-44"))->id;
  story.executor->run_until_idle();
  (*shop.bank)(std::string("receipt 9"));
  story.executor->run_until_idle();

  const ProcedureResult result = *story.executor->wait(id);
  CHECK(result.state == ProcedureState::kRolledBack);
  CHECK(result.status.message() == "no carrier");
  CHECK(shop.effects == ShopEffects{"reserve o-44", "charge o-44", "refund o-44", "release o-44"});
  // [/region]
}
