// SPDX-License-Identifier: Apache-2.0
//
// The client's half of the region server's line protocol (region_server.cc): from a call to a line,
// and from the answer to one of the four outcomes. Nothing here does I/O.

#pragma once

#include <string>

#include "cluster/line_client.h"
#include "pv2/procedures/server_calls.h"

namespace pv2 {

[[nodiscard]] std::string open_line(const RegionCall& call);
[[nodiscard]] std::string close_line(const RegionCall& call);

/// What may be concluded from the answer to an OPEN or a CLOSE.
[[nodiscard]] CallOutcome classify(const LineAnswer& answer);

/// Whether the answer to a STOP means that the server serves nothing any more.
[[nodiscard]] bool has_stopped(const LineAnswer& answer);

}  // namespace pv2
