// SPDX-License-Identifier: Apache-2.0
//
// The one step: it writes two rows, the piece and the length.

#include "append_to_text.h"

#include "add_to_counter.h"
#include "rows.h"

namespace counter {

pv2::LockSet AppendToText::locks() const {
  return pv2::LockSet().key({kTextResource, request_.name}, pv2::LockMode::kExclusive);
}

AppendToText::Flow AppendToText::execute_from_state(AppendStep /*step*/, pv2::StepContext& ctx) {
  const auto row = ctx.get_row(size_row(request_.name));
  if (!row.ok()) return fail(row.status());
  const std::uint64_t before = parse_number(row->value_or("0")).value_or(0);
  const std::string after = std::to_string(before + request_.piece.size());
  ctx.put_row(piece_row(request_.name, before), request_.piece);
  ctx.put_row(size_row(request_.name), after);
  return done(after);
}

}  // namespace counter
