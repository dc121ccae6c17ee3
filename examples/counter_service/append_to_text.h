// SPDX-License-Identifier: Apache-2.0
//
// AppendToText: the append as a procedure; see add_to_counter.h.

#pragma once

#include <pv2/engine/state_machine_procedure.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "requests.h"

namespace counter {

enum class AppendStep : std::uint8_t { kAppend = 1 };

/// Its result is the length of the text after it. As Procedure.
class AppendToText final : public pv2::StateMachineProcedure<AppendStep> {
 public:
  static constexpr std::string_view kType = "text.Append";
  static constexpr auto kSteps =
      pv2::steps(pv2::step(AppendStep::kAppend, "APPEND", pv2::kUndoable));

  AppendToText() = default;
  explicit AppendToText(AppendRequest request) : request_(std::move(request)) {}
  void fields(auto& f) {
    f.arg(1, "name", request_.name);
    f.arg(2, "piece", request_.piece);
  }
  [[nodiscard]] pv2::LockSet locks() const override;
  Flow execute_from_state(AppendStep step, pv2::StepContext& ctx) override;

 private:
  AppendRequest request_;
};

}  // namespace counter
