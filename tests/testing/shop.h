// SPDX-License-Identifier: Apache-2.0
//
// A shop that outlives every crash, and orders placed in it: one that is written as it should be,
// and the same with one defect each. The tests of pv2::testing show that the tools accept the first
// and name the defect of the others. The defects are deliberate.

#pragma once

#include <pv2/engine/procedure_executor.h>
#include <pv2/engine/procedure_registry.h>
#include <pv2/engine/state_machine_procedure.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "pv2/testing/findings.h"

namespace pv2::testing {

/// What is wrong with an order.
enum class Defect {
  kNone,
  kChargesTwice,   ///< CHARGE gives the bank no key to recognise it by.
  kForgetsParcel,  ///< The parcel's number is a member that fields() does not name.
  kKeepsTheMoney,  ///< CHARGE is not undone.
  kRefundsTwice,   ///< The undo of CHARGE gives no key either.
  kNeverShips,     ///< SHIP does not end when it runs a second time.
  kOneCrashOnly,   ///< It copes with one step that runs again, not with two.
};

/// The services that an order acts on. Owned by one thread.
struct Shop {
  std::set<std::string> reserved;
  int money = 0;
  int steps = 0;     ///< How many were begun.
  int shipping = 0;  ///< How often it was tried.

  /// The bank carries out each key once; without a key it does as it is told.
  void move_money(int amount, const std::string& key) {
    if (key.empty() || known_keys_.insert(key).second) money += amount;
  }

 private:
  std::set<std::string> known_keys_;
};

enum class OrderStep { kReserve = 1, kCharge = 2, kShip = 3 };

/// kStreetOpen: whether SHIP succeeds; otherwise the order is undone.
template <Defect kDefect, bool kStreetOpen>
class PlaceOrder final : public StateMachineProcedure<OrderStep> {
 public:
  static constexpr std::string_view kType = "shop.PlaceOrder";
  static constexpr auto kSteps = steps(step(OrderStep::kReserve, "RESERVE", kUndoable),
                                       step(OrderStep::kCharge, "CHARGE", kUndoable),
                                       step(OrderStep::kShip, "SHIP", kUndoable));
  explicit PlaceOrder(Shop& shop, std::string order = {}) : shop_(shop), order_(std::move(order)) {}
  void fields(auto& f) {
    f.arg(1, "order", order_);
    if constexpr (kDefect != Defect::kForgetsParcel) f(2, "parcel", parcel_);
  }

  Flow execute_from_state(OrderStep step, StepContext& ctx) override {
    ++shop_.steps;
    switch (step) {
      case OrderStep::kReserve:
        shop_.reserved.insert(order_);
        return next(OrderStep::kCharge);
      case OrderStep::kCharge:
        shop_.move_money(5, kDefect == Defect::kChargesTwice ? "" : ctx.effect_key());
        parcel_ = "parcel of " + order_;
        return next(OrderStep::kShip);
      case OrderStep::kShip:
        if (kDefect == Defect::kNeverShips && shop_.shipping++ > 0) return again();
        if (!kStreetOpen) return fail(Status(StatusCode::kUnavailable, "the street is closed"));
        return done(kDefect == Defect::kOneCrashOnly && shop_.steps > 4 ? "no parcel" : parcel_);
    }
    return fail(Status(StatusCode::kInternal, "there is no such step"));
  }

  Flow rollback_state(OrderStep step, StepContext& ctx) override {
    if (step == OrderStep::kReserve) shop_.reserved.erase(order_);
    if (step == OrderStep::kCharge && kDefect != Defect::kKeepsTheMoney) {
      shop_.move_money(-5, kDefect == Defect::kRefundsTwice ? "" : ctx.effect_key());
    }
    return undone();
  }

 private:
  Shop& shop_;
  std::string order_;
  std::string parcel_;
};

// [region world]
/// One order in one shop, and what has to be true of both in the end.
template <Defect kDefect, bool kStreetOpen>
struct OrderWorld {
  using Order = PlaceOrder<kDefect, kStreetOpen>;

  Shop shop;

  void add_types(ProcedureRegistry& types) { types.add<Order>(shop); }
  Order procedure() { return Order(shop, "o-42"); }
  void check(const ProcedureResult& result, Findings& findings) const {
    findings.expect(result.status.ok() == kStreetOpen, "the order ends as the street allows");
    findings.expect(shop.money == (kStreetOpen ? 5 : 0), "an order is paid if it is shipped");
    findings.expect(shop.reserved.empty() != kStreetOpen, "an order that failed reserves nothing");
  }
};
// [/region]

}  // namespace pv2::testing
