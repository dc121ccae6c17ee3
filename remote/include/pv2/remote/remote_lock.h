// SPDX-License-Identifier: Apache-2.0
//
// What RemoteExecutor tells of the locks of an executor: LockInfo with ages instead of times,
// because the steady clocks of two machines have nothing to do with each other. Plain values.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/resource.h>
#include <pv2/base/time.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pv2 {

/// One key that is locked, waited for or limited.
struct RemoteLock {
  struct Party {
    ProcedureId id{};
    LockMode mode = LockMode::kShared;
    Duration age{};  ///< It holds or waits for so long.
    std::string type{};
  };
  ResourceKey key{};
  std::optional<std::uint32_t> limit{};  ///< How many may hold it at once.
  std::vector<Party> holders{};
  std::vector<Party> waiters{};  ///< In the order in which they will be served.
};

/// The locks of an executor at one moment.
struct RemoteLocks {
  std::vector<RemoteLock> locks{};
  std::size_t left_out = 0;  ///< So many did not fit into the answer.
};

}  // namespace pv2
