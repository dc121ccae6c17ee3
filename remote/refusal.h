// SPDX-License-Identifier: Apache-2.0
//
// refuse(): tells a client that its copy of a call did nothing, in the code that decides whether it
// asks again.

#pragma once

#include <pv2/base/status.h>

namespace pv2 {

class IncomingCall;
class ProcedureExecutor;

/// Refuses `call` with `why`, an answer of `executor`. If the store has failed, an operation that
/// was not begun is refused as kUnavailable: another server, or this one after its next start, may
/// do it.
void refuse(const ProcedureExecutor& executor, IncomingCall& call, const Status& why);

/// Whether the same operation may be accepted when it is asked for again.
[[nodiscard]] bool may_pass(const ProcedureExecutor& executor, const Status& why);

}  // namespace pv2
