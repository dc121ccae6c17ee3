// SPDX-License-Identifier: Apache-2.0
//
// The one step: it reads the row, checks the limit, and writes the row.

#include "add_to_counter.h"

#include <fmt/format.h>

#include "rows.h"

namespace counter {

AddToCounter::Flow AddToCounter::execute_from_state(AddStep /*step*/, pv2::StepContext& ctx) {
  const auto row = ctx.get_row(counter_row(request_.name));
  if (!row.ok()) return fail(row.status());
  const std::uint64_t before = parse_number(row->value_or("0")).value_or(0);
  const std::uint64_t after = before + request_.amount;
  if (request_.not_above && after > *request_.not_above) {
    return fail({pv2::StatusCode::kFailedPrecondition,
                 fmt::format("{} is {}; with {} more it would be above {}", request_.name, before,
                             request_.amount, *request_.not_above)});
  }
  ctx.put_row(counter_row(request_.name), std::to_string(after));
  return done(std::to_string(after));
}

}  // namespace counter
