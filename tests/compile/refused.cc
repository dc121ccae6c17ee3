// SPDX-License-Identifier: Apache-2.0
//
// Procedures that are wrong, each in one way that would otherwise change silently what it does.
// Never compiled into anything: refused_test.sh has the compiler look at it, and wants an error for
// each comment of the form "refused: sentence", with that sentence, and not many lines beside it.

#include <pv2/engine/procedure_executor.h>
#include <pv2/engine/procedure_registry.h>
#include <pv2/engine/state_machine_procedure.h>

#include <array>
#include <string>
#include <string_view>

namespace {

enum class Step { kOne = 1, kTwo = 2 };
enum class OtherStep { kOne = 1 };
enum class ZeroStep { kZero, kOne };
struct Service {};

constexpr auto kTable = pv2::steps(pv2::step(Step::kOne, "ONE", pv2::kUndoable));

// What each of them has, and is right.
class Machine : public pv2::StateMachineProcedure<Step> {
 public:
  static constexpr std::string_view kType = "test.Machine";
  void fields(auto& /*f*/) {}
  Flow execute_from_state(Step /*step*/, pv2::StepContext& /*ctx*/) override { return done(); }
};
class Single : public pv2::Procedure {
 public:
  static constexpr std::string_view kType = "test.Single";
  void fields(auto& /*f*/) {}
  pv2::Outcome execute(pv2::StepContext& /*ctx*/) override { return done(); }
};

// refused: a StateMachineProcedure needs a table of its steps
struct MisspeltSteps : Machine {
  static constexpr auto kStep = kTable;
};
struct AlsoMisspelt : MisspeltSteps {};
// refused: kSteps is private
class HiddenSteps : public Machine {
  static constexpr auto kSteps = kTable;
};
// refused: kSteps is a `static constexpr auto kSteps = pv2::steps(...)` and nothing else
struct HandMadeSteps : Machine {
  static constexpr std::array<pv2::StepInfo, 0> kSteps{};
};
// refused: kSteps name steps of another enum
struct ForeignSteps : Machine {
  static constexpr auto kSteps = pv2::steps(pv2::step(OtherStep::kOne, "ONE", pv2::kNoUndo));
};
// refused: a step has the number 0
constexpr auto kFromZero = pv2::steps(pv2::step(ZeroStep::kZero, "ZERO", pv2::kNoUndo));
// refused: two steps of a table have the same number
constexpr auto kTwice = pv2::steps(pv2::step(Step::kOne, "ONE", pv2::kNoUndo),
                                   pv2::step(Step::kOne, "TWO", pv2::kNoUndo));
// refused: two steps of a table have the same name
constexpr auto kSameName = pv2::steps(pv2::step(Step::kOne, "ONE", pv2::kNoUndo),
                                      pv2::step(Step::kTwo, "ONE", pv2::kNoUndo));
// refused: a step has no name
constexpr auto kNameless = pv2::steps(pv2::step(Step::kOne, "", pv2::kNoUndo));
// refused: all over the same enum
constexpr auto kMixed = pv2::steps(pv2::step(Step::kOne, "ONE", pv2::kNoUndo),
                                   pv2::step(OtherStep::kOne, "TWO", pv2::kNoUndo));
// refused: a step table needs a row
constexpr auto kRows = pv2::steps();

// refused: kMaxAttempts is private
class HiddenAttempts : public Single {
  static constexpr std::uint32_t kMaxAttempts = 5;
};
// refused: kMaxAttempts is a number of 32 bits
struct NegativeAttempts : Single {
  static constexpr int kMaxAttempts = -1;
};
// refused: a member's name is nearly kMaxAttempts
struct MisspeltAttempts : Single {
  static constexpr std::uint32_t kMaxAttempt = 5;
};
// refused: kFinalOnSuccess is private
class HiddenFinal : public Single {
  static constexpr bool kFinalOnSuccess = true;
};
// refused: kFinalOnSuccess is a bool
struct NumericFinal : Single {
  static constexpr int kFinalOnSuccess = 2;
};
// refused: a member's name is nearly kFinalOnSuccess
struct MisspeltFinal : Single {
  static constexpr bool kFinalOnSucess = true;
};

// refused: kCountedAs is private
class HiddenCountedAs : public Single {
  static constexpr std::string_view kCountedAs = "orders";
};
// refused: kCountedAs is a name that is not empty
struct EmptyCountedAs : Single {
  static constexpr std::string_view kCountedAs = "";
};
// refused: a member's name is nearly kCountedAs
struct MisspeltCountedAs : Single {
  static constexpr std::string_view kCountAs = "orders";
};

// refused: kChildOnly is private
class HiddenChildOnly : public Single {
  static constexpr bool kChildOnly = true;
};
// refused: kChildOnly is a bool
struct NumericChildOnly : Single {
  static constexpr int kChildOnly = 1;
};
// refused: a member's name is nearly kChildOnly
struct MisspeltChildOnly : Single {
  static constexpr bool kOnlyChild = true;
};

// refused: a procedure needs a public `void fields(auto& f)`
struct NoFields : pv2::Procedure {
  static constexpr std::string_view kType = "test.NoFields";
  pv2::Outcome execute(pv2::StepContext& /*ctx*/) override { return done(); }
};
// refused: a procedure needs a public `static constexpr std::string_view kType
class HiddenType : public Single {
  static constexpr std::string_view kType = "test.HiddenType";
};
// refused: this class lacks an override
struct NoExecute : pv2::Procedure {
  static constexpr std::string_view kType = "test.NoExecute";
  void fields(auto& /*f*/) {}
};
// refused: after a crash an object is made as P(dependencies...)
struct NeedsMore : Single {
  NeedsMore(Service& service, std::string_view order);
};
// refused: a procedure is derived, publicly, from pv2::Procedure
struct NoProcedure {};
// refused: this type cannot be a field
struct PointerField : Single {
  void fields(auto& f) { f(1, "text", text); }
  const char* text = nullptr;
};
// refused: a procedure needs a public `void fields(auto& f)`
struct CopiesVisitor : Single {
  void fields(auto f) { f(1, "note", note); }
  std::string note;
};
// refused: after a crash an object is made as P(dependencies...)
class HiddenConstructor : public Single {
  HiddenConstructor() = default;
};

}  // namespace

void add_all(pv2::ProcedureRegistry& types, pv2::ProcedureExecutor& executor, Service& service) {
  types.add<MisspeltSteps>()
      .add<HiddenSteps>()
      .add<HandMadeSteps>()
      .add<ForeignSteps>()
      .add<HiddenAttempts>()
      .add<NegativeAttempts>()
      .add<MisspeltAttempts>()
      .add<HiddenFinal>()
      .add<NumericFinal>()
      .add<MisspeltFinal>()
      .add<HiddenCountedAs>()
      .add<EmptyCountedAs>()
      .add<MisspeltCountedAs>()
      .add<HiddenChildOnly>()
      .add<NumericChildOnly>()
      .add<MisspeltChildOnly>()
      .add<NoFields>()
      .add<HiddenType>()
      .add<NoExecute>()
      .add<NeedsMore>(service)
      .add<NoProcedure>()
      .add<PointerField>()
      .add<CopiesVisitor>()
      .add<HiddenConstructor>()
      .add<Single>();
  // refused: a StateMachineProcedure needs a table of its steps
  (void)executor.submit(AlsoMisspelt());
}
