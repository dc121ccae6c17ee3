// SPDX-License-Identifier: Apache-2.0
//
// Shows that the audit of the engine's state finds nothing in a sound engine, and that it names
// each fact that a test spoils behind the engine's back.

#include "watch/state_audit.h"

#include <pv2/engine/executor_options.h>
#include <pv2/engine/inspection.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/engine/state_machine_procedure.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "pv2/testing/step_executor.h"
#include "support/catch.h"

namespace pv2::testing::state_audit_test {
namespace {

enum class PartStep : std::uint32_t { kBegin = 1, kEnd = 2 };

/// Spawns `children` parts, and fails when they have ended. One without children waits for an hour
/// if it `waits`, and is done.
class Part final : public StateMachineProcedure<PartStep> {
 public:
  static constexpr std::string_view kType = "audit.Part";
  static constexpr auto kSteps =
      steps(step(PartStep::kBegin, "BEGIN", kUndoable), step(PartStep::kEnd, "END", kUndoable));
  explicit Part(std::uint64_t children = 0, bool waits = false, bool undo_waits = false)
      : children_(children), waits_(waits), undo_waits_(undo_waits) {}
  void fields(auto& f) {
    f.arg(1, "children", children_);
    f.arg(2, "waits", waits_);
    f.arg(3, "undo waits", undo_waits_);
  }
  Flow execute_from_state(PartStep, StepContext& ctx) override {
    if (ctx.step() == static_cast<std::uint32_t>(PartStep::kEnd)) {
      return fail(Status(StatusCode::kFailedPrecondition, "its children have ended"));
    }
    for (std::uint64_t i = 0; i < children_; ++i) ctx.spawn(Part(0, waits_, undo_waits_));
    if (children_ != 0) return next(PartStep::kEnd);
    if (waits_ && ctx.signal("go") == nullptr) return wait_for(std::chrono::hours(1));
    return done();
  }
  Flow rollback_state(PartStep, StepContext& ctx) override {
    if (undo_waits_ && ctx.signal("go") == nullptr) return wait();
    return undone();
  }

 private:
  std::uint64_t children_;
  bool waits_;
  bool undo_waits_;
};

struct Machine {
  StepExecutor steps{
      [](ProcedureRegistry& types) { types.add<Part>(); },
      [](ExecutorOptions& options) { options.retention.max_bytes = std::size_t{1} << 30; }};

  ProcedureId submit(Part part, std::uint64_t nonce) {
    SubmitOptions options;
    options.nonce = {1, nonce};
    const auto id = steps.submit(std::move(part), std::move(options));
    REQUIRE(id.status().to_string() == "OK");
    steps.run();
    return *id;
  }
  [[nodiscard]] std::vector<std::string> audit() { return StateAudit::of(steps.executor()); }
};

/// One fact that is spoiled and put right again.
struct Spoil {
  std::string said;  ///< A part of what the audit says of it.
  std::function<void(EngineState&)> spoil;
  std::function<void(EngineState&)> put_right;
};

void check_all(Machine& machine, const std::vector<Spoil>& spoils) {
  for (const Spoil& each : spoils) {
    INFO("spoiled: " << each.said);
    CHECK(machine.audit() == std::vector<std::string>());
    StateAudit::change(machine.steps.executor(), each.spoil);
    const std::vector<std::string> found = machine.audit();
    StateAudit::change(machine.steps.executor(), each.put_right);
    std::string all;
    for (const std::string& contradiction : found) all += contradiction + "\n";
    INFO("found:\n" << all);
    CHECK(all.find(each.said) != std::string::npos);
  }
  CHECK(machine.audit() == std::vector<std::string>());
}

/// A change of a number by one, both ways.
template <class Number>
Spoil one_more(std::string said, std::function<Number&(EngineState&)> of) {
  return {std::move(said), [of](EngineState& state) { of(state) += 1; },
          [of](EngineState& state) { of(state) -= 1; }};
}
/// A flag, both ways.
Spoil set(std::string said, const std::function<void(EngineState&, bool)>& to) {
  return {std::move(said), [to](EngineState& state) { to(state, true); },
          [to](EngineState& state) { to(state, false); }};
}

}  // namespace

TEST_CASE("the audit names each spoiled fact of a tree that goes forward") {
  Machine machine;
  const ProcedureId root = machine.submit(Part(2, true), 1);
  REQUIRE(machine.steps.executor().inspect().live_procedures() == 3);
  const auto parent = [root](EngineState& state) -> Execution& { return *state.live.find(root); };
  const auto child = [parent](EngineState& state) -> Execution& {
    return *parent(state).first_child();
  };
  const std::vector<Spoil> spoils = {
      one_more<std::uint32_t>("its number of unfinished children is said to be 3, and is 2",
                              [=](EngineState& state) -> std::uint32_t& {
                                return parent(state).edit_place().children.unfinished;
                              }),
      one_more<std::uint32_t>(
          "the number in flight of its domain is said to be 1, and is 0",
          [=](EngineState& state) -> std::uint32_t& { return parent(state).domain.in_flight; }),
      one_more<std::uint32_t>(
          "the number in flight of what failed with it is said to be 1, and is 0",
          [=](EngineState& state) -> std::uint32_t& {
            return parent(state).domain.rare.edit().in_flight_inside;
          }),
      one_more<std::uint32_t>(
          "the number of its members past their point of no return is said to be 1, and is 0",
          [=](EngineState& state) -> std::uint32_t& {
            return parent(state).domain.rare.edit().beyond;
          }),
      one_more<std::uint32_t>(
          "the number of its members that have begun to pass it is said to be 1, and is 0",
          [=](EngineState& state) -> std::uint32_t& {
            return parent(state).domain.rare.edit().begun;
          }),
      set("it is parked, and its root does not know",
          [=](EngineState& state, bool to) { child(state).record.parked = to; }),
      set("it does not know what around it has failed",
          [=](EngineState& state, bool to) {
            parent(state).domain.state.corrupt(to ? DomainState::kFailed : DomainState::kForward);
          }),
  };
  check_all(machine, spoils);

  check_all(
      machine,
      {set("its root is not that of its parent",
           [=](EngineState& state, bool to) {
             child(state).edit_place().root = to ? &child(state) : &parent(state);
           }),
       set("it is in another domain than its parent says",
           [=](EngineState& state, bool to) {
             child(state).edit_place().head = to ? &child(state) : &parent(state);
           }),
       set("it is undone beside others",
           [=](EngineState& state, bool to) {
             child(state).edit_place().beside = to ? &parent(state) : nullptr;
           }),
       set("its youngest child is another one",
           [=](EngineState& state, bool to) {
             Execution& first = child(state);
             parent(state).edit_place().children.last = to ? &first : first.siblings().next;
           }),
       set("its older sibling is another one",
           [=](EngineState& state, bool to) {
             Execution& first = child(state);
             first.siblings().next->edit_place().siblings.prev = to ? nullptr : &first;
           }),
       set("it has a timer, and does not wait",
           [=](EngineState& state, bool to) {
             child(state).phase.corrupt(to ? Phase::kIdle : Phase::kWaiting);
           }),
       set("nothing will happen to it",
           [=](EngineState& state, bool to) {
             child(state).phase.corrupt(to ? Phase::kIdle : Phase::kWaiting);
           }),
       set("not due when it says",
           [=](EngineState& state, bool to) {
             child(state).wait.due += std::chrono::seconds(to ? 1 : -1);
           }),
       set("it has unfinished children, and does not wait for them",
           [=](EngineState& state, bool to) {
             parent(state).record.state = to ? ProcedureState::kRunnable : ProcedureState::kWaiting;
           }),
       set("its tree has ended well, and it counts as failed",
           [=](EngineState& state, bool to) {
             Execution& root = parent(state);
             root.domain.state.corrupt(to ? DomainState::kOver : DomainState::kForward);
             root.domain.rare.edit().failing = to ? &root : nullptr;
             root.record.state = to ? ProcedureState::kSuccess : ProcedureState::kWaiting;
           }),
       set("members leave early below procedure 99, which is not live",
           [=](EngineState& state, bool to) {
             auto& leaves = state.works.early_leaves;
             to ? void(leaves.insert({{99}, {&parent(state), &parent(state)}}))
                : void(leaves.erase({99}));
           }),
       set("members leave early below it, though its domain is over",
           [=](EngineState& state, bool to) {
             Execution& root = parent(state);
             root.domain.state.corrupt(to ? DomainState::kOver : DomainState::kForward);
             auto& leaves = state.works.early_leaves;
             to ? void(leaves.insert({root.id, {&root, &root}})) : void(leaves.erase(root.id));
           }),
       set("a step of it is undone",
           [=](EngineState& state, bool to) { child(state).edit_turn().step = to ? 1 : 0; })});
}

TEST_CASE("the audit names each spoiled fact of a tree that is undone") {
  Machine machine;
  const ProcedureId root = machine.submit(Part(2, false, true), 1);
  REQUIRE(machine.steps.executor().inspect().live_procedures() == 3);
  const auto parent = [root](EngineState& state) -> Execution& { return *state.live.find(root); };
  const auto youngest = [parent](EngineState& state) -> Execution& {
    return *parent(state).children().last;
  };
  check_all(machine,
            {one_more<std::uint32_t>("the number of its steps that are left to undo",
                                     [=](EngineState& state) -> std::uint32_t& {
                                       return youngest(state).edit_turn().left;
                                     }),
             set("nothing happens in it",
                 [=](EngineState& state, bool to) { parent(state).edit_turn().step = to ? 0 : 2; }),
             set("it goes forward",
                 [=](EngineState& state, bool to) {
                   youngest(state).phase.corrupt(to ? Phase::kWaiting : Phase::kIdle);
                 }),
             set("does not know what around it has failed", [=](EngineState& state, bool to) {
               parent(state).domain.rare.edit().failing = to ? nullptr : &parent(state);
             })});
}

TEST_CASE("the audit names each spoiled fact of nonces, results and numbers") {
  Machine machine;
  const ProcedureId live = machine.submit(Part(1, true), 1);
  const ProcedureId ended = machine.submit(Part(), 2);
  REQUIRE(machine.steps.result(ended).ok());
  constexpr std::uint64_t kWatermark = ProcedureIds::kBlock + 1;  // that of a new store
  const NonceUse stray{.nonce = {1, 3}, .fingerprint = {}};
  check_all(
      machine,
      {{"its nonce is not known as its own",
        [=](EngineState& state) {
          state.submissions.nonces.remove({1, 1}, live);
          state.submissions.nonces.add({live.value + 1}, *state.live.find(live)->nonce_use);
        },
        [=](EngineState& state) {
          state.submissions.nonces.remove({1, 1}, {live.value + 1});
          state.submissions.nonces.add(live, *state.live.find(live)->nonce_use);
        }},
       {"it is not what its nonce was given to",
        [=](EngineState& state) { state.live.find(live)->nonce_use.edit().fingerprint.low ^= 1; },
        [=](EngineState& state) { state.live.find(live)->nonce_use.edit().fingerprint.low ^= 1; }},
       {"nonce 1/3 is said to be that of procedure " + std::to_string(live.value),
        [&](EngineState& state) { state.submissions.nonces.add(live, stray); },
        [&](EngineState& state) { state.submissions.nonces.remove(stray.nonce, live); }},
       one_more<std::size_t>("are known to the store alone, and it is not asked",
                             [](EngineState& state) -> std::size_t& {
                               return state.submissions.nonces_on_disk_only;
                             }),
       one_more<std::size_t>("1 children are about to be live, and no step runs",
                             [](EngineState& state) -> std::size_t& { return state.spawning; }),
       {"results that are kept are said to take",
        [=](EngineState& state) { state.submissions.retention.gone(ended, {}, 1); },
        [=](EngineState& state) { state.submissions.retention.kept(ended, {}, 1); }},
       {"no deletion is under way",
        [](EngineState& state) { state.garbage.pending[ProcedureId{1}].chains = 0; },
        [](EngineState& state) { state.garbage.pending.erase(ProcedureId{1}); }},
       {"may be", [](EngineState& state) { state.ids.written(state.ids.next() - 1); },
        [](EngineState& state) { state.ids.written(kWatermark); }}});
}

}  // namespace pv2::testing::state_audit_test
