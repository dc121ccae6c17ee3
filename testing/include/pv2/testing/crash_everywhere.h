// SPDX-License-Identifier: Apache-2.0
//
// crash_everywhere: plays a story once to count its store commits, then again for every commit,
// with the machine crashing right before or right after it. Each time it opens the store again,
// lets the story finish, and lets it check its end. Two more plays run every step twice (its record
// is dropped, so it runs again) and run every step on an object restored from its record. After a
// restart every persisted field of every procedure is compared with what was in memory when the
// crash came. The first bad crash point is reported in words; a story that does not end is one.
// Exceptions of the story's own code pass through.
//
// A CrashWorld (one procedure, one world that it acts on) is the short way; a CrashStory may have
// several clients that act on their own.

#pragma once

#include <pv2/engine/executor_options.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/store/procedure_store.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pv2/testing/findings.h"
#include "pv2/testing/ground.h"
#include "pv2/testing/keyed_client.h"

namespace pv2::testing {

/// How a play ended.
struct CrashEnd {
  ProcedureExecutor& executor;
  ProcedureStore& store;
  std::size_t crashes;  ///< How many there were in this play.
  Findings& findings;
};

/// What must be the same at the end of every play. Nothing in it may depend on procedure ids,
/// because a crash skips some; `result` is compared only between plays in which `id` is the same.
struct EndState {
  std::string world;
  ProcedureId id{};
  std::string result;
};

/// A workload with its clients and the world that it acts on; a new one is made for every play.
/// What it holds outlives every crash of that play. All calls come from one thread.
class CrashStory {
 public:
  virtual ~CrashStory() = default;
  virtual void add_types(ProcedureRegistry& registry) = 0;
  /// A life begins: clients submit again, with the same nonces, what they have not seen accepted,
  /// and ask for results. Only asynchronous verbs may be used: the life may end at any commit.
  virtual void begin_life(ProcedureExecutor& executor) = 0;
  /// Called when only time could move anything. Something outside the engine may answer now; true
  /// if it did.
  virtual bool stir(ProcedureExecutor& /*executor*/) { return false; }
  /// Called after every turn: something outside may act at that moment, with asynchronous verbs
  /// only. True if something is on its way to the store now.
  virtual bool after_turn(ProcedureExecutor& /*executor*/) { return false; }
  /// Everything has ended. The story adds what is wrong to end.findings.
  virtual void check_end(CrashEnd& end) = 0;
  /// Called after check_end().
  virtual EndState end_state() { return {}; }
};

/// How thorough the test is. Pairs of crashes grow with the square of the commits, crashes at
/// operations with the operations of the ground.
struct CrashPlan {
  bool twice = false;  ///< On the memory store, also a second crash at each later commit.
  /// More stores to play on, after the memory store.
  std::vector<MakeGround> grounds{};
  bool operations = false;  ///< On `grounds`, also a crash at every operation beneath the commits.
  RetryPolicy retry{};
  /// Called for each play with a description of it; has to call `play`, once, or the play is left
  /// out. For test frameworks that keep a context.
  std::function<void(const std::string& words, const std::function<void()>& play)> around{};
};

/// What crash_everywhere found.
struct CrashReport {
  std::size_t plays = 0;    ///< How often the story was played.
  std::size_t commits = 0;  ///< How many the story makes when nothing crashes, one step at a time.
  std::string failure;      ///< The first bad crash point, in words; empty when there is none.

  [[nodiscard]] bool ok() const noexcept { return failure.empty(); }
};

using MakeStory = std::function<std::unique_ptr<CrashStory>()>;

/// Makes all plays, until one finds something. Runs on the calling thread, under a manual clock.
[[nodiscard]] CrashReport crash_everywhere(const MakeStory& make, const CrashPlan& plan = {});

/// A world for one procedure. `procedure()` makes what the client submits, the same every time;
/// `check()` is called when the procedure has ended. A world may also have
///
///     bool stir();                  something outside answers now (a completion is called);
///                                   returns whether something did
///     std::string show() const;     returns what must be the same at the end, whatever crashed
template <class World>
concept CrashWorld = requires(World& world, ProcedureRegistry& registry,
                              const ProcedureResult& result, Findings& findings) {
  world.add_types(registry);
  { world.procedure() } -> std::derived_from<Procedure>;
  world.check(result, findings);
};

/// The story of one client that submits the procedure of a world until it has the result.
template <CrashWorld World>
class WorldStory final : public CrashStory {
 public:
  explicit WorldStory(std::unique_ptr<World> world) : world_(std::move(world)) {}

  void add_types(ProcedureRegistry& registry) override { world_->add_types(registry); }
  void begin_life(ProcedureExecutor& executor) override {
    client_.begin_life();
    client_.submit(executor, world_->procedure());
  }
  bool stir(ProcedureExecutor& /*executor*/) override {
    if constexpr (requires { world_->stir(); }) return world_->stir();
    return false;
  }
  void check_end(CrashEnd& end) override {
    if (!client_.trouble().empty()) end.findings.add(client_.trouble());
    if (!client_.result()) return end.findings.add("the client was never told a result");
    world_->check(*client_.result(), end.findings);
  }
  EndState end_state() override {
    EndState state;
    if constexpr (requires { world_->show(); }) state.world = world_->show();
    if (client_.result()) {
      state.id = client_.id();
      state.result = client_.result()->status.to_string() + " '" + client_.result()->result + "'";
    }
    return state;
  }

 private:
  std::unique_ptr<World> world_;
  KeyedClient client_{Nonce{1, 1}};
};

/// Crashes everywhere in the procedure of a world; `make` gives a new world for every play.
template <CrashWorld World>
[[nodiscard]] CrashReport crash_everywhere(
    const CrashPlan& plan = {},
    std::function<std::unique_ptr<World>()> make = [] { return std::make_unique<World>(); }) {
  const MakeStory make_story = [&make] { return std::make_unique<WorldStory<World>>(make()); };
  return crash_everywhere(make_story, plan);
}

}  // namespace pv2::testing
