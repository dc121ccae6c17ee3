// SPDX-License-Identifier: Apache-2.0
//
// What callers and steps hand in, measured against limits.h. Each check names what is too large,
// its size and its bound. Nothing here takes a lock or calls user code.

#pragma once

#include <pv2/base/resource.h>
#include <pv2/base/status.h>
#include <pv2/store/commit_request.h>
#include <pv2/store/procedure_store.h>

#include <string>
#include <string_view>

#include "pv2/engine/limits.h"

namespace pv2 {

struct ExecutorOptions;

/// OK, or kInvalidArgument: "`what` has ... bytes; at most ...".
[[nodiscard]] Status check_bytes(std::string_view what, std::size_t bytes, std::size_t most);

/// A key that is locked or limited: its name, and its class, which is one of ResourceClass.
[[nodiscard]] Status check_key(const ResourceKey& key);

/// The keys of a lock set and how many they are; modes and scope, which have to exist.
[[nodiscard]] Status check_locks(const std::string& type, const LockSet& locks);

/// Numbers, names and the store of an executor that is to be opened.
[[nodiscard]] Status check_limits_of(const ExecutorOptions& options);

/// What the fields or the result of one procedure may have: no more than a batch, nor than
/// limits::kRecordBytes.
[[nodiscard]] std::size_t record_bytes_max(const StoreLimits& limits) noexcept;

/// Whether a store with these limits takes the batch.
[[nodiscard]] bool fits(const StoreLimits& limits, const RowBatch& batch) noexcept;

/// For messages: the first `shown` bytes of a string that may be long, and dots for the rest.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t shown = 64);

/// The error as it is recorded: its message is cut at limits::kErrorBytes, because every later
/// record of its procedure repeats it.
[[nodiscard]] Status bounded(Status error);

}  // namespace pv2
