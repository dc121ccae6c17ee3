// SPDX-License-Identifier: Apache-2.0
//
// What ProcedureExecutor::open() asks of its options before it touches the store.

#pragma once

#include <pv2/base/status.h>

namespace pv2 {

struct ExecutorOptions;

/// OK, or kInvalidArgument: names the option, and says what is wrong with it.
[[nodiscard]] Status check_options(const ExecutorOptions& options);

}  // namespace pv2
