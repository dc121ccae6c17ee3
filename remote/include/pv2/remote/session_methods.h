// SPDX-License-Identifier: Apache-2.0
//
// These methods are the server's half of RpcSession (rpc/rpc_session.h).

#pragma once

#include <pv2/idempotency/client_sessions.h>
#include <pv2/rpc/rpc_server.h>

namespace pv2 {

/// Adds the methods "pv2.session.open", "pv2.session.heartbeat" and "pv2.session.close".
/// `sessions` outlives the server and its calls. The caller that opens a session owns it
/// (IncomingCall::caller).
void add_session_methods(RpcMethods& methods, ClientSessions& sessions);

}  // namespace pv2
