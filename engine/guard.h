// SPDX-License-Identifier: Apache-2.0
//
// The one door into user code: whatever it throws comes out as a Status that names where it was
// thrown.

#pragma once

#include <pv2/base/status.h>

#include <string>
#include <type_traits>
#include <utility>

#include "pv2/engine/step_context.h"

namespace pv2 {

/// Calls `code`; `name` is asked for the place's name only when it throws. Result<T>, or Status for
/// void and Status.
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
    const std::string place = name();
    return internal::status_of_current_exception(place);
  }
}

}  // namespace pv2
