// SPDX-License-Identifier: Apache-2.0
//
// AddToCounter: the increment as a procedure. Its row is changed in the record that ends the step,
// so it is done once whatever happens to the process; the nonce of its submission sees to it that
// it is submitted once.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "requests.h"

namespace counter {

/// Resources that the procedures lock. Persisted.
inline constexpr auto kCounterResource = pv2::ResourceClass{64};
inline constexpr auto kTextResource = pv2::ResourceClass{65};

enum class AddStep : std::uint8_t { kAdd = 1 };

/// Its result is the value after it. As Procedure.
class AddToCounter final : public pv2::StateMachineProcedure<AddStep> {
 public:
  static constexpr std::string_view kType = "counter.Add";
  static constexpr auto kSteps = pv2::steps(pv2::step(AddStep::kAdd, "ADD", pv2::kUndoable));

  AddToCounter() = default;
  explicit AddToCounter(AddRequest request) : request_(std::move(request)) {}
  void fields(auto& f) {
    f.arg(1, "name", request_.name);
    f.arg(2, "amount", request_.amount);
    f.arg(3, "not_above", request_.not_above);
  }
  [[nodiscard]] pv2::LockSet locks() const override {
    return pv2::LockSet().key({kCounterResource, request_.name}, pv2::LockMode::kExclusive);
  }
  Flow execute_from_state(AddStep step, pv2::StepContext& ctx) override;

 private:
  AddRequest request_;
};

}  // namespace counter
