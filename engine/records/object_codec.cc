// SPDX-License-Identifier: Apache-2.0
//
// Every call of user code is made through guarded(), outside every lock.

#include "records/object_codec.h"

#include "model/check_limits.h"
#include "model/guard.h"
#include "pv2/engine/procedure_registry.h"

namespace pv2 {

Status describe_new(Procedure& object, Execution& execution, std::string& scratch) {
  const ProcedureType& type = *execution.type;
  LockSet locks;
  Status status = guarded([&] { return "fields(), locks() or priority() of " + type.name; },
                          [&] {
                            scratch.clear();
                            type.encode(object, FieldSelection::kArguments, scratch);
                            execution.arguments = scratch;
                            scratch.clear();
                            type.encode(object, FieldSelection::kState, scratch);
                            execution.record.image = scratch;
                            locks = object.locks();
                            execution.priority = object.priority();
                          });
  if (status.ok()) status = check_locks(type.name, locks);
  // A set that is empty now may be given the place of a limit on the type.
  const bool says_something = !locks.empty() || locks.scope() != LockScope::kOperation;
  if (status.ok() && says_something) execution.edit_locks() = std::move(locks);
  return status;
}

Result<std::unique_ptr<Procedure>> decode_arguments(const ProcedureType& type,
                                                    std::string_view arguments) {
  std::unique_ptr<Procedure> object;
  Status made = guarded([&] { return "making a " + type.name + " from its arguments"; },
                        [&]() -> Status {
                          object = type.create();
                          return type.decode(*object, FieldSelection::kArguments, arguments);
                        });
  if (!made.ok()) return made;
  return object;
}

Result<std::unique_ptr<Procedure>> object_of(const Execution& execution) {
  const ProcedureType& type = *execution.type;
  std::unique_ptr<Procedure> object;
  Status made =
      guarded([&] { return "making a " + type.name + " from its record"; },
              [&]() -> Status {
                object = type.create();
                Status read = type.decode(*object, FieldSelection::kArguments, execution.arguments);
                if (read.ok())
                  read = type.decode(*object, FieldSelection::kState, execution.record.image);
                return read;
              });
  if (!made.ok()) return made;
  return object;
}

}  // namespace pv2
