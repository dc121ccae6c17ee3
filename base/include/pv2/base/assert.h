// SPDX-License-Identifier: Apache-2.0
//
// PV2_ASSERT: an invariant of pv2 itself, checked in every build. It is for defects, never for
// input: a wrong argument or a damaged record gets a Status. A failed assertion prints the
// invariant in words and aborts, because an engine that has lost an invariant must not write
// another record.

#pragma once

namespace pv2::internal {

[[noreturn]] void assertion_failed(const char* expression, const char* message, const char* file,
                                   int line) noexcept;

}  // namespace pv2::internal

/// Aborts with `message` (what must hold, in words) when `condition` is false.
#define PV2_ASSERT(condition, message)               \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::pv2::internal::assertion_failed(#condition, message, __FILE__, __LINE__))
