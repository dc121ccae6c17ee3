// SPDX-License-Identifier: Apache-2.0
//
// Durations in words: for people who want to know whether to wait, not for measurements. Nothing
// reads them back.

#pragma once

#include <pv2/base/time.h>

#include <string>

namespace pv2::shell {

/// "12 ms", "3.4 s", "5 min 6 s", "2 h 3 min", "4 d 5 h"; a negative one is "0 ms".
[[nodiscard]] std::string in_words(Duration duration);

}  // namespace pv2::shell
