// SPDX-License-Identifier: Apache-2.0
//
// The step table: one declaration that names the steps of a state machine, says which can be undone
// and where the point of no return lies. Rollback, abort and previews are all derived from it;
// nothing is declared twice. The numbers are persisted and never reused.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace pv2 {

/// What going back over a step means.
enum class StepKind : std::uint8_t {
  kUndoable,  ///< rollback_state() undoes it. It must cope with a step that was only half done.
  kNoUndo,    ///< It leaves nothing to undo (a check), or lies behind the point of no return.
  kPointOfNoReturn,  ///< Once this step is done (durable), nothing before it will be undone any
                     ///< more.
};
inline constexpr StepKind kUndoable = StepKind::kUndoable;
inline constexpr StepKind kNoUndo = StepKind::kNoUndo;
inline constexpr StepKind kPointOfNoReturn = StepKind::kPointOfNoReturn;

/// One row of a step table.
struct StepInfo {
  std::uint32_t number = 0;  ///< Persisted; not 0.
  std::string_view name;     ///< For people; a string literal.
  StepKind kind = StepKind::kUndoable;
  /// After so many failed attempts the procedure parks. 0: as its class says (kMaxAttempts), else
  /// as RetryPolicy::max_attempts says.
  std::uint32_t max_attempts = 0;
};

/// A row of the table. `value` is the enumerator; its number is persisted.
template <class Step>
requires std::is_enum_v<Step>
constexpr StepInfo step(Step value, std::string_view name, StepKind kind,
                        std::uint32_t max_attempts = 0) {
  return {static_cast<std::uint32_t>(value), name, kind, max_attempts};
}

/// The table: the first row is where a procedure starts. Does not compile when a number is 0 or
/// used twice, or when there is no row.
template <class... Rows>
requires(sizeof...(Rows) > 0 &&
         (std::is_same_v<Rows, StepInfo> &&
          ...)) consteval std::array<StepInfo, sizeof...(Rows)> steps(Rows... rows) {
  const std::array<StepInfo, sizeof...(Rows)> table{rows...};
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].number == 0) throw "a step has the number 0, which means 'no step'";
    for (std::size_t j = i + 1; j < table.size(); ++j) {
      if (table[i].number == table[j].number) throw "two steps have the same number";
    }
  }
  return table;
}

}  // namespace pv2
