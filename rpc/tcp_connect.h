// SPDX-License-Identifier: Apache-2.0
//
// One attempt to connect: finding the host, TCP, TLS, all before one deadline.

#pragma once

#include <pv2/base/time.h>

#include "pv2/rpc/transport.h"
#include "tcp_address.h"
#include "tcp_loop.h"

namespace pv2 {

class TlsContext;

/// Calls `connected` once, not within this call. `loop` and `tls`, which may be null, outlive the
/// attempt. On the loop's thread.
void tcp_connect(TcpLoop& loop, TlsContext* tls, TcpAddress address, Duration timeout,
                 Transport::Connected connected);

}  // namespace pv2
