// SPDX-License-Identifier: Apache-2.0
//
// The step table: one declaration that names the steps of a state machine and says which can be
// undone, where the point of no return lies, and which step an operator cannot skip. Rollback,
// abort, orders and previews are all derived from it, so nothing is declared twice. The numbers are
// persisted and never reused. A table that is wrong does not compile.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace pv2 {

/// What a rollback does when it comes to a step.
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
  /// After this many failed attempts the procedure parks. 0: as its class says (kMaxAttempts),
  /// otherwise as RetryPolicy::max_attempts says.
  std::uint32_t max_attempts = 0;
  bool must_run = false;  ///< StepRow::must_run().
};

/// A row as step() makes it: it still knows the enum that its step belongs to.
template <class Step>
struct StepRow {
  Step value;
  std::string_view name;
  StepKind kind;
  std::uint32_t max_attempts;
  bool is_relied_on = false;

  /// For a step that checks what later steps take for granted, or decides what they use: an
  /// operator cannot have it counted as done, nor pass over it (skip_step is refused). Its undo may
  /// be skipped.
  [[nodiscard]] constexpr StepRow must_run() const {
    StepRow row = *this;
    row.is_relied_on = true;
    return row;
  }
};

/// A row of the table. `value` is the enumerator; its number is persisted.
template <class Step>
requires std::is_enum_v<Step>
constexpr StepRow<Step> step(Step value, std::string_view name, StepKind kind,
                             std::uint32_t max_attempts = 0) {
  return {value, name, kind, max_attempts};
}

/// The rows of a state machine over `Step`: at least one, and no two with the same number or name.
/// Made by steps(), while compiling. Immutable.
template <class Step, std::size_t kSize>
class StepTable {
 public:
  using StepType = Step;

  /// Does not compile unless every row has a number from 1 to 2^32 - 1 and a name of its own.
  consteval explicit StepTable(const std::array<StepRow<Step>, kSize>& rows) {
    static_assert(kSize > 0, "a step table has a first row: where a procedure starts");
    for (std::size_t i = 0; i < kSize; ++i) {
      const StepRow<Step>& row = rows[i];
      const auto number = static_cast<std::underlying_type_t<Step>>(row.value);
      if (!std::in_range<std::uint32_t>(number)) throw "pv2: a step's number is 1 to 2^32 - 1";
      if (number == 0) throw "pv2: a step has the number 0, which means 'no step': begin at 1";
      if (row.name.empty()) throw "pv2: a step has no name: people see it in listings";
      if (row.kind > StepKind::kPointOfNoReturn) throw "pv2: a step is of a kind that is none";
      for (std::size_t j = 0; j < i; ++j) {
        if (rows[j].value == row.value) throw "pv2: two steps of a table have the same number";
        if (rows[j].name == row.name) throw "pv2: two steps of a table have the same name";
      }
      rows_[i] = {static_cast<std::uint32_t>(number), row.name, row.kind, row.max_attempts,
                  row.is_relied_on};
    }
  }

  [[nodiscard]] constexpr const StepInfo* begin() const noexcept { return rows_.data(); }
  [[nodiscard]] constexpr const StepInfo* end() const noexcept { return rows_.data() + kSize; }
  [[nodiscard]] static constexpr std::size_t size() noexcept { return kSize; }
  [[nodiscard]] constexpr const StepInfo& operator[](std::size_t index) const {
    return rows_[index];
  }

 private:
  std::array<StepInfo, kSize> rows_{};
};

namespace internal {

template <class T>
inline constexpr bool kIsStepRow = false;
template <class Step>
inline constexpr bool kIsStepRow<StepRow<Step>> = true;

template <class T>
inline constexpr bool kIsStepTable = false;
template <class Step, std::size_t kSize>
inline constexpr bool kIsStepTable<StepTable<Step, kSize>> = true;

template <class First, class... Others>
inline constexpr bool kAreRowsOfOneEnum = kIsStepRow<First> &&
                                          (std::is_same_v<First, Others> && ...);

}  // namespace internal

/// Makes the table of these rows; the first is where a procedure starts. Does not compile when a
/// number or a name is missing or used twice, when rows name steps of several enums, or when there
/// is no row.
template <class... Rows>
consteval auto steps(Rows... rows) {
  static_assert(sizeof...(Rows) > 0,
                "pv2: a step table needs a row, where a procedure starts: "
                "steps(step(MyStep::kFirst, \"FIRST\", kUndoable))");
  if constexpr (sizeof...(Rows) > 0) {
    constexpr bool kSame = internal::kAreRowsOfOneEnum<Rows...>;
    static_assert(kSame, "pv2: steps() takes rows made by pv2::step(), all over the same enum");
    if constexpr (kSame) {
      using Step = std::common_type_t<decltype(rows.value)...>;
      return StepTable<Step, sizeof...(Rows)>(std::array<StepRow<Step>, sizeof...(Rows)>{rows...});
    }
  }
}

}  // namespace pv2
