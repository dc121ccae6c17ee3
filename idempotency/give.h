// SPDX-License-Identifier: Apache-2.0
//
// How this layer calls an answer of the host: what it throws must not keep others from their
// answers.

#pragma once

#include <utility>

namespace pv2 {

/// Calls `answer(value)` and swallows what it throws; an owner in `value` then ends without a
/// verdict.
template <class Answer, class Value>
void give(const Answer& answer, Value value) noexcept {
  try {
    answer(std::move(value));
  } catch (...) {  // the host's own
  }
}

}  // namespace pv2
