// SPDX-License-Identifier: Apache-2.0
//
// Between a user's object and the bytes of its record: fields are encoded when a procedure is new,
// and decoded when it runs without an object. All of it calls user code; what that throws comes
// back as a Status.

#pragma once

#include <pv2/base/status.h>

#include <memory>
#include <string>
#include <string_view>

#include "model/execution.h"

namespace pv2 {

/// Fills the arguments, image, locks and priority of `execution` from a new object. `scratch` is a
/// buffer that keeps its memory between calls. Fails when user code throws, or when the object asks
/// for locks that no procedure may have (check_locks()).
Status describe_new(Procedure& object, Execution& execution, std::string& scratch);

/// Makes a new object with these arguments. kCorruption: they cannot be read. Any other failure:
/// user code threw.
Result<std::unique_ptr<Procedure>> decode_arguments(const ProcedureType& type,
                                                    std::string_view arguments);

/// Makes an object from the last record of `execution`, whose type is known.
/// kCorruption: the fields in the record cannot be read. Any other failure: user code threw, and
/// may succeed the next time.
Result<std::unique_ptr<Procedure>> object_of(const Execution& execution);

}  // namespace pv2
