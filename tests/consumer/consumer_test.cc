// SPDX-License-Identifier: Apache-2.0
//
// A user's test of a procedure of the user's own, without a test framework: it proves that
// pv2::testing is installed, links, and can pass and fail a procedure of another project. Exits
// with 1 when it cannot.

#include <pv2/engine/procedure_registry.h>
#include <pv2/engine/state_machine_procedure.h>
#include <pv2/testing/crash_everywhere.h>

#include <cstdio>
#include <memory>
#include <string_view>

namespace {

enum class LampStep { kOn = 1, kTell = 2 };

struct Lamp {
  bool on = false;
};

// Switches a lamp on, or, when it is sloppy, turns the switch without looking.
class LightLamp final : public pv2::StateMachineProcedure<LampStep> {
 public:
  static constexpr std::string_view kType = "lamp.Light";
  static constexpr auto kSteps = pv2::steps(pv2::step(LampStep::kOn, "ON", pv2::kUndoable),
                                            pv2::step(LampStep::kTell, "TELL", pv2::kNoUndo));
  LightLamp(Lamp& lamp, bool& sloppy) : lamp_(lamp), sloppy_(sloppy) {}
  void fields(auto& /*f*/) {}

  Flow execute_from_state(LampStep step, pv2::StepContext& /*ctx*/) override {
    if (step == LampStep::kTell) return done("it is lit");
    lamp_.on = sloppy_ ? !lamp_.on : true;
    return next(LampStep::kTell);
  }

 private:
  Lamp& lamp_;
  bool& sloppy_;
};

struct Room {
  bool sloppy = false;
  Lamp lamp;

  void add_types(pv2::ProcedureRegistry& types) { types.add<LightLamp>(lamp, sloppy); }
  LightLamp procedure() { return LightLamp(lamp, sloppy); }
  void check(const pv2::ProcedureResult& result, pv2::testing::Findings& findings) const {
    findings.expect(result.status.ok() && lamp.on, "there is light");
  }
};

pv2::testing::CrashReport crash_in(bool sloppy) {
  return pv2::testing::crash_everywhere<Room>({}, [sloppy] {
    auto room = std::make_unique<Room>();
    room->sloppy = sloppy;
    return room;
  });
}

}  // namespace

int main() {
  const auto careful = crash_in(false);
  const auto sloppy = crash_in(true);
  std::printf("careful: %zu plays%s\nsloppy: %s", careful.plays, careful.failure.c_str(),
              sloppy.failure.c_str());
  return careful.ok() && !sloppy.ok() ? 0 : 1;
}
