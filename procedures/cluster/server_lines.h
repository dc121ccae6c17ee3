// SPDX-License-Identifier: Apache-2.0
//
// The client's half of the region server's line protocol (region_server.cc): from a call to a line,
// and from the answer to one of the four outcomes. Nothing here does I/O.

#pragma once

#include <cstdint>
#include <string>

#include "cluster/line_client.h"
#include "pv2/procedures/server_calls.h"

namespace pv2 {

/// kOpenRegion or kCloseRegion; the servers of this cluster do nothing else.
[[nodiscard]] std::string line_of(const RemoteOperation& operation);

/// What may be concluded from the answer to an OPEN or a CLOSE. These answers are at once the
/// server's report: `sequence` is that of an opening that is done.
struct LineOutcome {
  DispatchOutcome dispatch;
  std::uint64_t sequence = 0;
};
[[nodiscard]] LineOutcome classify(const LineAnswer& answer);

/// Whether the answer to a STOP means that the server serves nothing any more.
[[nodiscard]] bool has_stopped(const LineAnswer& answer);

}  // namespace pv2
