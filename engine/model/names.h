// SPDX-License-Identifier: Apache-2.0
//
// Names: what messages and log lines call a procedure and its steps, so that an operator can search
// for one spelling. A procedure is "procedure 7"; where its type is known, "procedure 7
// (test.Job)".

#pragma once

#include <fmt/format.h>
#include <pv2/base/ids.h>

#include <cstdint>
#include <string>

/// Prints the number alone.
template <>
struct fmt::formatter<pv2::ProcedureId> : fmt::formatter<std::uint64_t> {
  template <class Context>
  auto format(pv2::ProcedureId id, Context& context) const {
    return fmt::formatter<std::uint64_t>::format(id.value, context);
  }
};

namespace pv2 {

struct Execution;

/// "procedure 7".
[[nodiscard]] std::string name_of(ProcedureId id);
/// "procedure 7 (test.Job)". Reads only what never changes, so it needs no lock.
[[nodiscard]] std::string name_of(const Execution& execution);
/// The name of `step` in the step table; its number if the type or the step is unknown.
[[nodiscard]] std::string name_of_step(const Execution& execution, std::uint32_t step);

}  // namespace pv2
