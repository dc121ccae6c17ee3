// SPDX-License-Identifier: Apache-2.0
//
// Registration: keeps the types by name and remembers the first mistake.

#include "pv2/engine/procedure_registry.h"

#include <pv2/base/assert.h>

#include "model/check_limits.h"
#include "model/guard.h"

namespace pv2 {

const StepInfo* ProcedureType::find_step(std::uint32_t number) const noexcept {
  for (const StepInfo& step : steps) {
    if (step.number == number) return &step;
  }
  return nullptr;
}

Status ProcedureType::check_class_of(const Procedure& object) const {
  PV2_ASSERT(made_of != nullptr, "a registered type has a class");
  if (typeid(object) == *made_of) return Status();
  return Status(StatusCode::kInvalidArgument,
                "the ProcedureRegistry has another class called '" + name +
                    "' than the one that was handed in; give each its own kType and add both");
}

const ProcedureType* ProcedureRegistry::find(std::string_view name) const noexcept {
  const auto at = types_.find(name);
  return at == types_.end() ? nullptr : at->second.get();
}

void ProcedureRegistry::add_type(ProcedureType type, Status (*validate)(Procedure&),
                                 FieldSchema (*describe)(Procedure&)) {
  PV2_ASSERT(!type.steps.empty(), "a table of steps has a first row");
  if (!status_.ok()) return;
  if (type.name.empty()) {
    status_ = Status(StatusCode::kInvalidArgument, "a procedure type has an empty kType");
    return;
  }
  status_ = check_bytes("the kType of '" + shortened(type.name) + "'", type.name.size(),
                        limits::kTypeNameBytes);
  if (!status_.ok()) return;
  status_ = guarded([&] { return "making a " + type.name; },
                    [&] {
                      const auto object = type.create();
                      Status status = validate(*object);
                      if (status.ok()) type.schema = describe(*object);
                      return status;
                    })
                .with_context("procedure type '" + type.name + "'");
  if (!status_.ok()) return;
  std::string name = type.name;
  type.index = types_.size();
  const auto [at, added] =
      types_.emplace(name, std::make_shared<const ProcedureType>(std::move(type)));
  if (!added) {
    status_ = Status(StatusCode::kInvalidArgument,
                     "two procedure types are called '" + name + "'; kType must be unique");
  }
}

}  // namespace pv2
