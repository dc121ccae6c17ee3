// SPDX-License-Identifier: Apache-2.0
//
// The shortest stories: a procedure runs to its end, is undone, waits, retries, and survives a
// restart. Everything runs on this thread, on the memory store, under a manual clock.

#include <pv2/engine/inspection.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/engine/state_machine_procedure.h>
#include <pv2/store/memory_procedure_store.h>

#include <memory>
#include <string>
#include <vector>

#include "support/catch.h"

namespace {

using namespace std::chrono_literals;

struct World {
  std::vector<std::string> effects;
  bool fail_ship = false;
  int retries = 0;
  bool offload = false;
};

enum class OrderStep { kReserve = 1, kCharge = 2, kShip = 3 };

class PlaceOrder final : public pv2::StateMachineProcedure<OrderStep> {
 public:
  static constexpr std::string_view kType = "shop.PlaceOrder";
  static constexpr auto kSteps =
      pv2::steps(pv2::step(OrderStep::kReserve, "RESERVE", pv2::kUndoable),
                 pv2::step(OrderStep::kCharge, "CHARGE", pv2::kUndoable),
                 pv2::step(OrderStep::kShip, "SHIP", pv2::kPointOfNoReturn));
  explicit PlaceOrder(World& world, std::string order = {})
      : world_(world), order_(std::move(order)) {}
  void fields(auto& f) {
    f.arg(1, "order", order_);
    f(2, "parcel", parcel_);
  }
  pv2::LockSet locks() const override {
    return pv2::LockSet().table("shop", order_, pv2::LockMode::kExclusive);
  }
  Flow execute_from_state(OrderStep step, pv2::StepContext& ctx) override {
    switch (step) {
      case OrderStep::kReserve:
        world_.effects.push_back("reserve " + order_);
        return next(OrderStep::kCharge);
      case OrderStep::kCharge: {
        if (world_.retries > 0) {
          --world_.retries;
          return retry(pv2::Status(pv2::StatusCode::kUnavailable, "the bank is closed"));
        }
        if (world_.offload) {
          auto* charged = ctx.offload([&w = world_, order = order_] {
            w.effects.push_back("charge " + order);
            return std::string("receipt");
          });
          if (charged == nullptr) return wait();
          parcel_ = **charged;
        } else {
          world_.effects.push_back("charge " + order_);
          parcel_ = "parcel";
        }
        return next(OrderStep::kShip);
      }
      case OrderStep::kShip:
        if (world_.fail_ship) return fail(pv2::Status(pv2::StatusCode::kUnavailable, "no carrier"));
        world_.effects.push_back("ship " + order_);
        return done(parcel_ + " shipped");
    }
    return fail({pv2::StatusCode::kInternal, "no such step"});
  }
  Flow rollback_state(OrderStep step, pv2::StepContext&) override {
    world_.effects.push_back(step == OrderStep::kReserve ? "release " + order_
                                                         : "refund " + order_);
    return undone();
  }

 private:
  World& world_;
  std::string order_;
  std::string parcel_;
};

class Batch final : public pv2::StateMachineProcedure<OrderStep> {
 public:
  static constexpr std::string_view kType = "shop.Batch";
  static constexpr auto kSteps =
      pv2::steps(pv2::step(OrderStep::kReserve, "SPAWN", pv2::kUndoable),
                 pv2::step(OrderStep::kCharge, "COLLECT", pv2::kUndoable));
  explicit Batch(World& world) : world_(world) {}
  void fields(auto& /*f*/) {}
  Flow execute_from_state(OrderStep step, pv2::StepContext& ctx) override {
    if (step == OrderStep::kReserve) {
      for (const char* order : {"a", "b", "c"}) ctx.spawn(PlaceOrder(world_, order));
      return next(OrderStep::kCharge);
    }
    std::string all;
    for (const auto& child : ctx.children()) all += std::string(child.result) + ";";
    return done(all);
  }
  Flow rollback_state(OrderStep, pv2::StepContext&) override {
    world_.effects.push_back("undo batch");
    return undone();
  }

 private:
  World& world_;
};

struct Bench {
  World world;
  std::shared_ptr<pv2::ManualClock> clock = std::make_shared<pv2::ManualClock>();
  std::shared_ptr<pv2::MemoryDisk> disk = std::make_shared<pv2::MemoryDisk>();
  std::unique_ptr<pv2::ProcedureExecutor> executor;

  Bench() { open(); }
  void open() {
    executor.reset();
    pv2::ExecutorOptions options;
    options.store = pv2::memory(disk);
    options.registry.add<PlaceOrder>(world).add<Batch>(world);
    options.workers = 0;
    options.clock = clock;
    auto opened = pv2::ProcedureExecutor::open(std::move(options));
    REQUIRE(opened.status().to_string() == "OK");
    executor = *std::move(opened);
    executor->start();
  }
};

using Effects = std::vector<std::string>;

}  // namespace

TEST_CASE("a state machine runs its steps in order and keeps its result") {
  Bench bench;
  auto submitted = bench.executor->submit(PlaceOrder(bench.world, "o-42"), {.nonce = {1, 7}});
  REQUIRE(submitted.status().to_string() == "OK");
  bench.executor->run_until_idle();
  auto result = bench.executor->wait(submitted->id);
  REQUIRE(result.status().to_string() == "OK");
  CHECK(result->status.ok());
  CHECK(result->result == "parcel shipped");
  CHECK(bench.world.effects == Effects{"reserve o-42", "charge o-42", "ship o-42"});

  auto again = bench.executor->submit(PlaceOrder(bench.world, "o-42"), {.nonce = {1, 7}});
  REQUIRE(again.ok());
  CHECK(again->id == submitted->id);
  CHECK(again->replayed);
  CHECK(
      bench.executor->submit(PlaceOrder(bench.world, "o-43"), {.nonce = {1, 7}}).status().code() ==
      pv2::StatusCode::kKeyReused);

  bench.open();
  again = bench.executor->submit(PlaceOrder(bench.world, "o-42"), {.nonce = {1, 7}});
  REQUIRE(again.ok());
  CHECK(again->id == submitted->id);
  result = bench.executor->wait(submitted->id);
  REQUIRE(result.ok());
  CHECK(result->result == "parcel shipped");
  REQUIRE(bench.executor->acknowledge(submitted->id).ok());
  CHECK(bench.executor->wait(submitted->id).status().code() == pv2::StatusCode::kExpired);
  CHECK(bench.disk->rows() - bench.disk->rows(pv2::Space::kEngine) == 0);
}

TEST_CASE("a failed step undoes what was done, newest first") {
  Bench bench;
  bench.world.fail_ship = true;
  auto submitted = bench.executor->submit(PlaceOrder(bench.world, "o-1"));
  bench.executor->run_until_idle();
  auto result = bench.executor->wait(submitted->id);
  REQUIRE(result.ok());
  CHECK(result->state == pv2::ProcedureState::kRolledBack);
  CHECK(result->status.message() == "no carrier");
  CHECK(bench.world.effects == Effects{"reserve o-1", "charge o-1", "refund o-1", "release o-1"});
  CHECK(bench.executor->inspect().locks().empty());
}

TEST_CASE("a retry waits for its back-off, also over a restart") {
  Bench bench;
  bench.world.retries = 2;
  auto submitted = bench.executor->submit(PlaceOrder(bench.world, "o-1"));
  bench.executor->run_until_idle();
  CHECK(bench.executor->inspect().describe(submitted->id)->attempt == 2);
  bench.open();
  bench.executor->run_until_idle();
  CHECK(bench.executor->inspect().describe(submitted->id)->attempt == 2);
  CHECK(bench.executor->inspect().describe(submitted->id)->error.message() == "the bank is closed");
  bench.clock->advance(1200ms);
  bench.executor->run_until_idle();
  CHECK(bench.executor->inspect().describe(submitted->id)->attempt == 3);
  bench.clock->advance(3s);
  bench.executor->run_until_idle();
  CHECK(bench.executor->wait(submitted->id)->status.ok());
}

TEST_CASE("offloaded work reaches the next run of its step") {
  Bench bench;
  bench.world.offload = true;
  auto submitted = bench.executor->submit(PlaceOrder(bench.world, "o-1"));
  bench.executor->run_until_idle();
  CHECK(bench.executor->wait(submitted->id)->result == "receipt shipped");
}

TEST_CASE("a parent goes on when all its children have finished, and sees their results") {
  Bench bench;
  auto submitted = bench.executor->submit(Batch(bench.world));
  bench.executor->run_until_idle();
  auto result = bench.executor->wait(submitted->id);
  REQUIRE(result.ok());
  CHECK(result->result == "parcel shipped;parcel shipped;parcel shipped;");
  CHECK(bench.executor->inspect().live_procedures() == 0);
  CHECK(bench.disk->rows() - bench.disk->rows(pv2::Space::kEngine, "schema:") ==
        3);  // the watermark, and the root's result and date
}

TEST_CASE("a child that fails has its whole tree undone") {
  Bench bench;
  bench.world.fail_ship = true;
  auto submitted = bench.executor->submit(Batch(bench.world));
  bench.executor->run_until_idle();
  auto result = bench.executor->wait(submitted->id);
  REQUIRE(result.ok());
  CHECK(result->state == pv2::ProcedureState::kRolledBack);
  CHECK(bench.world.effects.back() == "undo batch");
  CHECK(bench.executor->inspect().locks().empty());
  CHECK(bench.disk->rows() - bench.disk->rows(pv2::Space::kEngine, "schema:") == 3);
}
