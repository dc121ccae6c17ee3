// SPDX-License-Identifier: Apache-2.0
//
// Checks of what callers and steps hand in, against limits.h. Each failure names the thing that is
// too large, its size and its bound. Nothing here takes a lock or calls user code.

#pragma once

#include <pv2/base/resource.h>
#include <pv2/base/status.h>
#include <pv2/store/procedure_store.h>

#include <string>
#include <string_view>

#include "pv2/engine/limits.h"

namespace pv2 {

struct ExecutorOptions;

/// OK, or kInvalidArgument: "`what` has ... bytes; at most ...".
[[nodiscard]] Status check_bytes(std::string_view what, std::size_t bytes, std::size_t most);

/// Checks a key that is locked or limited: the length of its name, and that its class exists.
[[nodiscard]] Status check_key(const ResourceKey& key);

/// Checks a lock set: each key, the number of keys, and that the modes and the scope exist.
[[nodiscard]] Status check_locks(const std::string& type, const LockSet& locks);

/// Checks the numbers, the names and the store of an executor that is to be opened.
[[nodiscard]] Status check_limits_of(const ExecutorOptions& options);

/// The most bytes that the fields or the result of one procedure may have: those of a batch, but no
/// more than limits::kRecordBytes.
[[nodiscard]] std::size_t record_bytes_max(const StoreLimits& limits) noexcept;

/// For messages: the first `shown` bytes of `text`, and dots if it is longer.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t shown = 64);

/// The error as it is recorded. Its message is cut at limits::kErrorBytes, because every later
/// record of the procedure repeats it.
[[nodiscard]] Status bounded(Status error);

}  // namespace pv2
