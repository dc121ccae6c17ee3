// SPDX-License-Identifier: Apache-2.0
//
// ProcedureRegistry: the types that an executor can run, and how to make an object of each again
// after a crash. A dependency given to add() reaches every object made later, so procedures carry
// references to services and persist only their fields.
//
// How it fails: add() never does; a wrong type (two with one name, two fields with one number) is
// remembered and makes ProcedureExecutor::open() fail with a message that names it.

#pragma once

#include <pv2/base/field_schema.h>
#include <pv2/base/fields.h>
#include <pv2/base/status.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "pv2/engine/procedure.h"
#include "pv2/engine/procedure_class.h"
#include "pv2/engine/step_table.h"

namespace pv2 {

/// What the engine knows of a type. Immutable once registered; const methods may be called
/// concurrently.
struct ProcedureType {
  std::string name;
  std::size_t index = 0;  ///< 0, 1, ... in order of registration: its place in tables by type.
  std::vector<StepInfo> steps;  ///< One row numbered 1 for a procedure without a table.
  bool final_on_success = false;
  bool child_only = false;                  ///< No root: it is refused where one is submitted.
  std::string counted_as;                   ///< Several of them, in words: "regions".
  std::uint32_t max_attempts = 0;           ///< For steps that set none; 0: as the executor says.
  FieldSchema schema;                       ///< What its fields() describes.
  const std::type_info* made_of = nullptr;  ///< The class that was registered.
  std::function<std::unique_ptr<Procedure>()> create;
  void (*encode)(Procedure&, FieldSelection, std::string& out) = nullptr;
  Status (*decode)(Procedure&, FieldSelection, std::string_view bytes) = nullptr;
  std::string (*print)(Procedure&) = nullptr;

  /// The row of step `number`, or nullptr.
  [[nodiscard]] const StepInfo* find_step(std::uint32_t number) const noexcept;
  /// OK, or an error if `object` is of a class that only has the same kType: it is of no use here,
  /// because its fields are not those of the registered class.
  [[nodiscard]] Status check_class_of(const Procedure& object) const;
};

/// Filled by one thread, then given to an executor, which keeps a copy. Const methods may be called
/// concurrently.
class ProcedureRegistry {
 public:
  /// Registers P, and makes one object to look at its fields. After a crash an object is made as
  /// P(dependencies...), then its fields are decoded; the dependencies must outlive the executor.
  /// A class that lacks something, or hides or misspells it, does not compile, and the message says
  /// what to write.
  template <class P, class... Dependencies>
  ProcedureRegistry& add(Dependencies&... dependencies) {
    constexpr auto kMistake = internal::mistake_in_type<P, Dependencies&...>();
    internal::require_procedure<P, kMistake>();
    if constexpr (kMistake == internal::ClassMistake::kNone) add_class<P>(dependencies...);
    return *this;
  }

  /// The type called `name`, or nullptr. Stable for the registry's life.
  [[nodiscard]] const ProcedureType* find(std::string_view name) const noexcept;
  /// All registered types, by name.
  [[nodiscard]] const std::map<std::string, std::shared_ptr<const ProcedureType>, std::less<>>&
  types() const& noexcept {
    return types_;
  }
  /// The first thing that was wrong with an add(), or OK.
  [[nodiscard]] const Status& status() const noexcept { return status_; }

 private:
  template <class P, class... Dependencies>
  void add_class(Dependencies&... dependencies) {
    ProcedureType type;
    type.name = P::kType;
    type.made_of = &typeid(P);
    type.create = [&dependencies...]() -> std::unique_ptr<Procedure> {
      return std::make_unique<P>(dependencies...);
    };
    if constexpr (std::is_same_v<decltype(P::kSteps), const internal::NoSteps>) {
      type.steps.push_back({1, "EXECUTE", StepKind::kUndoable});
    } else {
      type.steps.assign(P::kSteps.begin(), P::kSteps.end());
    }
    type.max_attempts = static_cast<std::uint32_t>(P::kMaxAttempts);
    type.final_on_success = P::kFinalOnSuccess;
    type.child_only = P::kChildOnly;
    type.counted_as = P::kCountedAs;
    type.encode = [](Procedure& object, FieldSelection which, std::string& out) {
      encode_fields(static_cast<P&>(object), which, out);
    };
    type.decode = [](Procedure& object, FieldSelection which, std::string_view bytes) -> Status {
      return decode_fields(static_cast<P&>(object), which, bytes);
    };
    type.print = [](Procedure& object) -> std::string {
      return print_fields(static_cast<P&>(object));
    };
    add_type(
        std::move(type),
        [](Procedure& object) -> Status { return validate_fields(static_cast<P&>(object)); },
        [](Procedure& object) -> FieldSchema { return schema_of(static_cast<P&>(object)); });
  }
  void add_type(ProcedureType type, Status (*validate)(Procedure&),
                FieldSchema (*describe)(Procedure&));

  // Shared by the copies of a registry: the types are immutable, and an executor points at them.
  std::map<std::string, std::shared_ptr<const ProcedureType>, std::less<>> types_;
  Status status_;
};

}  // namespace pv2
