// SPDX-License-Identifier: Apache-2.0
//
// What a class must have to be a procedure, and the sentence that the compiler prints when
// something is missing. Everything that a class declares for pv2 is looked up by name, so a name
// that is private, misspelt or of another type must not pass for an absent one. The base declares
// every optional name with its default: if the name cannot be seen in a class, the class hides it.
//
// Not detected: a misspelling that nobody thought of, and one that is also private. The default
// then stays in force.

#pragma once

#include <pv2/base/fields.h>

#include <concepts>
#include <string_view>
#include <type_traits>
#include <utility>

#include "pv2/engine/procedure.h"
#include "pv2/engine/state_machine_procedure.h"
#include "pv2/engine/step_table.h"

namespace pv2 {

/// What a class must have at least: the base, and a public kType.
template <class P>
concept ProcedureClass = std::is_base_of_v<Procedure, P> && requires {
  { P::kType } -> std::convertible_to<std::string_view>;
};

namespace internal {

/// The first thing that is wrong with a class.
enum class ClassMistake {
  kNone,
  kNoProcedure,
  kNoType,
  kNoFields,
  kNoSteps,
  kHiddenSteps,
  kForeignSteps,
  kStepsOfOtherEnum,
  kHiddenMaxAttempts,
  kWrongMaxAttempts,
  kNearMaxAttempts,
  kHiddenFinalOnSuccess,
  kWrongFinalOnSuccess,
  kNearFinalOnSuccess,
  kHiddenCountedAs,
  kWrongCountedAs,
  kNearCountedAs,
  kHiddenChildOnly,
  kWrongChildOnly,
  kNearChildOnly,
  kAbstract,
  kCannotBeMade,
};

template <class Step>
std::type_identity<Step> step_type_of(const StateMachineProcedure<Step>&);
template <class P>
concept StateMachineClass = requires(const P& object) {
  internal::step_type_of(object);
};

template <class P>
concept HasUsableSteps = kIsStepTable<std::remove_cvref_t<decltype(P::kSteps)>> && requires {
  typename std::bool_constant<(P::kSteps[0].number > 0)>;
};
template <class P>
concept HasUsableMaxAttempts =
    std::integral<std::remove_cvref_t<decltype(P::kMaxAttempts)>> &&
    !std::same_as<std::remove_cvref_t<decltype(P::kMaxAttempts)>, bool> &&
    requires {
  requires std::bool_constant<(P::kMaxAttempts >= 0 && P::kMaxAttempts <= 0xFFFF'FFFF)>::value;
};
template <class P>
concept HasUsableFinalOnSuccess = std::same_as < std::remove_cvref_t<decltype(P::kFinalOnSuccess)>,
bool > &&requires { typename std::bool_constant<P::kFinalOnSuccess>; };

template <class P>
concept HasUsableChildOnly = std::same_as < std::remove_cvref_t<decltype(P::kChildOnly)>,
bool > &&requires { typename std::bool_constant<P::kChildOnly>; };

template <class P>
concept HasUsableCountedAs =
    std::convertible_to<decltype(P::kCountedAs), std::string_view> && requires {
  requires std::bool_constant<!std::string_view(P::kCountedAs).empty()>::value;
};

// clang-format off
template <class P>
concept NearMaxAttempts =
    requires { P::kMaxAttempt; } || requires { P::kMaxAttemps; } ||
    requires { P::kMaxAtempts; } || requires { P::kMaxAttemtps; } ||
    requires { P::kMaxAttepmts; } || requires { P::kMaxAttemts; } ||
    requires { P::kMaxAttempst; } || requires { P::kMaxattempts; } ||
    requires { P::kmaxAttempts; } || requires { P::KMaxAttempts; } ||
    requires { P::kMaxAttempts_; } || requires { P::MaxAttempts; } ||
    requires { P::kMaxAttemptss; } || requires { P::kMaximumAttempts; } ||
    requires { P::kAttemptsMax; } || requires { P::kMax_Attempts; } ||
    requires { P::kMax_attempts; } || requires { P::kMAX_ATTEMPTS; } ||
    requires { P::MAX_ATTEMPTS; };
template <class P>
concept NearFinalOnSuccess =
    requires { P::kFinalOnSucces; } || requires { P::kFinalOnSucess; } ||
    requires { P::kFinalOnSuccesss; } || requires { P::kFinalOnSucccess; } ||
    requires { P::kFinalOnSuces; } || requires { P::kFinalOnSuccsess; } ||
    requires { P::kFinalOnsuccess; } || requires { P::kFinalonSuccess; } ||
    requires { P::kfinalOnSuccess; } || requires { P::KFinalOnSuccess; } ||
    requires { P::kFinalOnSuccess_; } || requires { P::FinalOnSuccess; } ||
    requires { P::kFinallOnSuccess; } || requires { P::kFinaOnSuccess; } ||
    requires { P::kIsFinalOnSuccess; } || requires { P::kFinalOnSuccessful; } ||
    requires { P::kFINAL_ON_SUCCESS; } || requires { P::FINAL_ON_SUCCESS; };
template <class P>
concept NearCountedAs =
    requires { P::kCountAs; } || requires { P::kCountsAs; } ||
    requires { P::kCountedas; } || requires { P::kCountedAS; } ||
    requires { P::kcountedAs; } || requires { P::KCountedAs; } ||
    requires { P::CountedAs; } || requires { P::kCountedAs_; } ||
    requires { P::kCounted_As; } || requires { P::COUNTED_AS; };
template <class P>
concept NearChildOnly =
    requires { P::kChildonly; } || requires { P::kchildOnly; } ||
    requires { P::KChildOnly; } || requires { P::ChildOnly; } ||
    requires { P::kChildOnly_; } || requires { P::kChild_Only; } ||
    requires { P::kOnlyChild; } || requires { P::kOnlyAsChild; } ||
    requires { P::kIsChildOnly; } || requires { P::kChildrenOnly; } ||
    requires { P::kChidOnly; } || requires { P::kChildOny; } ||
    requires { P::CHILD_ONLY; };
// clang-format on

/// Checks the declarations in the class, in the order in which a reader writes them.
template <class P>
consteval ClassMistake mistake_in_class() {
  using enum ClassMistake;
  if constexpr (!std::is_convertible_v<P*, Procedure*>) {
    return kNoProcedure;
  } else if constexpr (!ProcedureClass<P>) {
    return kNoType;
  } else if constexpr (!HasFields<P>) {
    return kNoFields;
  } else if constexpr (!requires { P::kSteps; }) {
    return kHiddenSteps;
  } else if constexpr (std::same_as<std::remove_cvref_t<decltype(P::kSteps)>, NoSteps>) {
    if constexpr (StateMachineClass<P>) return kNoSteps;
  } else if constexpr (!HasUsableSteps<P>) {
    return kForeignSteps;
  } else if constexpr (StateMachineClass<P>) {
    using Wanted = typename decltype(step_type_of(std::declval<const P&>()))::type;
    using Rows = typename std::remove_cvref_t<decltype(P::kSteps)>::StepType;
    if constexpr (!std::same_as<Wanted, Rows>) return kStepsOfOtherEnum;
  }
  if constexpr (std::is_convertible_v<P*, Procedure*>) {
    if constexpr (!requires { P::kMaxAttempts; }) {
      return kHiddenMaxAttempts;
    } else if constexpr (!HasUsableMaxAttempts<P>) {
      return kWrongMaxAttempts;
    } else if constexpr (NearMaxAttempts<P>) {
      return kNearMaxAttempts;
    } else if constexpr (!requires { P::kFinalOnSuccess; }) {
      return kHiddenFinalOnSuccess;
    } else if constexpr (!HasUsableFinalOnSuccess<P>) {
      return kWrongFinalOnSuccess;
    } else if constexpr (NearFinalOnSuccess<P>) {
      return kNearFinalOnSuccess;
    } else if constexpr (!requires { P::kCountedAs; }) {
      return kHiddenCountedAs;
    } else if constexpr (!HasUsableCountedAs<P>) {
      return kWrongCountedAs;
    } else if constexpr (NearCountedAs<P>) {
      return kNearCountedAs;
    } else if constexpr (!requires { P::kChildOnly; }) {
      return kHiddenChildOnly;
    } else if constexpr (!HasUsableChildOnly<P>) {
      return kWrongChildOnly;
    } else if constexpr (NearChildOnly<P>) {
      return kNearChildOnly;
    }
  }
  return kNone;
}

/// Like mistake_in_class(), and checks that an object can be made from `Dependencies`.
template <class P, class... Dependencies>
consteval ClassMistake mistake_in_type() {
  constexpr ClassMistake kInClass = mistake_in_class<P>();
  if constexpr (kInClass != ClassMistake::kNone) return kInClass;
  if constexpr (std::is_abstract_v<P>) return ClassMistake::kAbstract;
  if constexpr (!std::is_constructible_v<P, Dependencies...>) return ClassMistake::kCannotBeMade;
  return ClassMistake::kNone;
}

/// Prints the mistake, one sentence for each. The compiler names the class in the line that it puts
/// next to the sentence.
template <class P, ClassMistake kMistake>
constexpr void require_procedure() {
  using enum ClassMistake;
  static_assert(kMistake != kNoProcedure,
                "pv2: a procedure is derived, publicly, from pv2::Procedure or "
                "pv2::StateMachineProcedure<Step>");
  static_assert(kMistake != kNoType,
                "pv2: a procedure needs a public "
                "`static constexpr std::string_view kType = \"shop.PlaceOrder\";`");
  static_assert(kMistake != kNoFields,
                "pv2: a procedure needs a public `void fields(auto& f)`, empty when nothing "
                "survives a crash");
  static_assert(kMistake != kNoSteps,
                "pv2: a StateMachineProcedure needs a table of its steps: a public `static "
                "constexpr auto kSteps = pv2::steps(pv2::step(MyStep::kFirst, \"FIRST\", "
                "pv2::kUndoable), ...);`");
  static_assert(kMistake != kHiddenSteps,
                "pv2: kSteps is private, or two bases declare one; make it public");
  static_assert(kMistake != kForeignSteps,
                "pv2: kSteps is a `static constexpr auto kSteps = pv2::steps(...)` and nothing "
                "else");
  static_assert(kMistake != kStepsOfOtherEnum,
                "pv2: the rows of kSteps name steps of another enum than that of "
                "StateMachineProcedure<Step>");
  static_assert(kMistake != kHiddenMaxAttempts,
                "pv2: kMaxAttempts is private, or two bases declare one; make it public");
  static_assert(kMistake != kWrongMaxAttempts,
                "pv2: kMaxAttempts is a number of 32 bits: "
                "`static constexpr std::uint32_t kMaxAttempts = 5;`");
  static_assert(kMistake != kNearMaxAttempts,
                "pv2: a member's name is nearly kMaxAttempts, which says after how many attempts a "
                "step parks; write kMaxAttempts, or choose another name");
  static_assert(kMistake != kHiddenFinalOnSuccess,
                "pv2: kFinalOnSuccess is private, or two bases declare one; make it public");
  static_assert(kMistake != kWrongFinalOnSuccess,
                "pv2: kFinalOnSuccess is a bool: `static constexpr bool kFinalOnSuccess = true;`");
  static_assert(kMistake != kNearFinalOnSuccess,
                "pv2: a member's name is nearly kFinalOnSuccess, which says that a finished one "
                "stays when its tree is undone; write kFinalOnSuccess, or choose another name");
  static_assert(kMistake != kHiddenCountedAs,
                "pv2: kCountedAs is private, or two bases declare one; make it public");
  static_assert(kMistake != kWrongCountedAs,
                "pv2: kCountedAs is a name that is not empty: "
                "`static constexpr std::string_view kCountedAs = \"regions\";`");
  static_assert(kMistake != kNearCountedAs,
                "pv2: a member's name is nearly kCountedAs, which says what listings call several "
                "such procedures; write kCountedAs, or choose another name");
  static_assert(kMistake != kHiddenChildOnly,
                "pv2: kChildOnly is private, or two bases declare one; make it public");
  static_assert(kMistake != kWrongChildOnly,
                "pv2: kChildOnly is a bool: `static constexpr bool kChildOnly = true;`");
  static_assert(kMistake != kNearChildOnly,
                "pv2: a member's name is nearly kChildOnly, which says that only other procedures "
                "start such a procedure; write kChildOnly, or choose another name");
  static_assert(kMistake != kAbstract,
                "pv2: this class lacks an override: execute() of a Procedure, or "
                "execute_from_state() of a StateMachineProcedure");
  static_assert(kMistake != kCannotBeMade,
                "pv2: after a crash an object is made as P(dependencies...), from what add() is "
                "given: it needs a public constructor that takes just these, by reference, all "
                "other parameters with defaults");
}

}  // namespace internal
}  // namespace pv2
