// SPDX-License-Identifier: Apache-2.0
//
// What has to compile without a word, in a program that includes the tour and nothing else, and
// says `using namespace pv2;`. Looked at by refused_test.sh, like refused.cc.

#include <pv2/pv2.h>

using namespace pv2;

namespace {

enum class Step { kOne = 1, kTwo = 2 };

// Everything that a class may declare, and the smallest way to write what it must.
class All final : public StateMachineProcedure<Step> {
 public:
  static constexpr std::string_view kType = "test.All";
  static constexpr auto kSteps =
      steps(step(Step::kOne, "ONE", kUndoable, 3), step(Step::kTwo, "TWO", kNoUndo));
  static constexpr int kMaxAttempts = 5;
  static constexpr bool kFinalOnSuccess = true;
  static constexpr std::string_view kCountedAs = "orders";
  static constexpr bool kChildOnly = false;
  All(int& service, const std::string& name, std::string order = {})
      : service_(service), order_(name + order) {}
  void fields(auto& f) { f.arg(1, "order", order_); }

 private:
  Flow execute_from_state(Step /*step*/, StepContext& /*ctx*/) override { return done(); }
  int& service_;
  std::string order_;
};

class Least : public Procedure {
 public:
  static constexpr auto kType = "test.Least";
  void fields(auto&) {}
  Outcome execute(StepContext&) override { return again(); }
};

// A table and a default of a base are its own.
class Derived : public Least {
 public:
  static constexpr auto kType = "test.Derived";
};

}  // namespace

void host(ProcedureRegistry& types, int& service, const std::string& name) {
  types.add<All>(service, name).add<Least>().add<Derived>();
  // The namespace of LevelDB is not to be seen, so this name is not ambiguous.
  auto executor = ProcedureExecutor::open({.store = leveldb("orders.db"), .registry = types});
  (void)(*executor)->submit(All(service, name));
  for (const std::string& line :
       *(*executor)->operate().preview(ProcedureId{1}, RepairVerb::kBypass)) {
    (void)line;
  }
}
