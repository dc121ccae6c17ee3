// SPDX-License-Identifier: Apache-2.0
//
// The first program: an order is reserved, charged and shipped, whatever happens to the process.
// Run it twice: the second run submits under the same nonce and gets the first run's answer;
// nothing is shipped again. It keeps its store in ./orders.db.

#include <pv2/pv2.h>

#include <iostream>

enum class OrderStep { kReserve = 1, kCharge = 2, kShip = 3 };  // persisted: never reused

class PlaceOrder final : public pv2::StateMachineProcedure<OrderStep> {
 public:
  static constexpr std::string_view kType = "shop.PlaceOrder";  // persisted: stable across renames
  static constexpr auto kSteps =
      pv2::steps(pv2::step(OrderStep::kReserve, "RESERVE", pv2::kUndoable),
                 pv2::step(OrderStep::kCharge, "CHARGE", pv2::kUndoable),
                 pv2::step(OrderStep::kShip, "SHIP", pv2::kPointOfNoReturn));
  explicit PlaceOrder(std::ostream& shop, std::string order = {}) : shop_(shop), order_(order) {}
  void fields(auto& f) { f.arg(1, "order", order_), f(2, "parcel", parcel_); }

  Flow execute_from_state(OrderStep step, pv2::StepContext& ctx) override {
    shop_ << "step " << static_cast<int>(step) << " of order " << order_ << '\n';
    if (step == OrderStep::kReserve) return next(OrderStep::kCharge);
    if (step == OrderStep::kShip) return done(parcel_);
    parcel_ = "parcel " + std::to_string(ctx.id().value);  // survives from here on
    return next(OrderStep::kShip);
  }
  Flow rollback_state(OrderStep step, pv2::StepContext& /*ctx*/) override {
    shop_ << "undo step " << static_cast<int>(step) << " of order " << order_ << '\n';
    return undone();
  }

 private:
  std::ostream& shop_;
  std::string order_, parcel_;
};

int main() {
  pv2::ProcedureRegistry types;
  types.add<PlaceOrder>(std::cout);  // dependencies return after a crash
  auto executor =
      pv2::ProcedureExecutor::open({.store = pv2::leveldb("orders.db"), .registry = types});
  if (!executor.ok()) return std::cerr << executor.status().to_string() << '\n', 1;
  (*executor)->start();  // goes on with what the last process left
  auto order =
      (*executor)->submit(PlaceOrder(std::cout, "o-42"), {.nonce = {.group = 1, .value = 42}});
  auto result = (*executor)->wait(order.value().id);
  std::cout << (order->replayed ? "known already: " : "done: ") << result.value().result << '\n';
}
