// SPDX-License-Identifier: Apache-2.0
//
// guarded(): the one door into user code. Whatever user code throws comes out as a Status that
// names the place where it was thrown.

#pragma once

#include <pv2/base/status.h>

#include <string>
#include <type_traits>
#include <utility>

#include "pv2/engine/step_context.h"

namespace pv2 {

namespace internal {

// What user code throws when there is no memory says so, also if there is none for its name.
template <class Name>
std::string name_of_place(Name&& name) noexcept {
  try {
    return std::forward<Name>(name)();
  } catch (...) {
    return "user code";  // needs no memory of its own
  }
}

}  // namespace internal

/// Calls `code`. Returns Result<T>, or Status if `code` returns void or Status. `name` returns the
/// name of the place; it is called only when `code` throws. The caller holds no lock.
template <class Name, class Code>
auto guarded(Name&& name, Code&& code) ->
    typename internal::OffloadValue<std::invoke_result_t<Code>>::type {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Code>>) {
      std::forward<Code>(code)();
      return Status();
    } else {
      return std::forward<Code>(code)();
    }
  } catch (...) {
    const std::string place = internal::name_of_place(std::forward<Name>(name));
    return internal::status_of_current_exception(place);
  }
}

}  // namespace pv2
