// SPDX-License-Identifier: Apache-2.0
//
// Sequential procedures: a class without a step table has one step, EXECUTE, which runs until it
// says done(), and one undo. (The original's SequentialProcedure.)

#include "pv2/testing/crash_everywhere.h"
#include "support/repair_orders.h"

namespace pv2::testing::sequential_test {
namespace {

// Spawns a Chain of one level less, joins it, and is done. Level 1 spawns none; it may `fail`.
class Chain final : public Procedure {
 public:
  static constexpr std::string_view kType = "test.Chain";
  explicit Chain(Journal& journal, std::uint64_t levels = 0, bool fails = false)
      : journal_(journal), levels_(levels), fails_(fails) {}
  void fields(auto& f) {
    f.arg(1, "levels", levels_), f.arg(2, "fails", fails_);
    f(3, "spawned", spawned_);
  }

  Outcome execute(StepContext& ctx) override {
    const std::string level = std::to_string(levels_);
    if (!spawned_ && levels_ > 1) {
      journal_.note("down " + level);
      spawned_ = true;
      ctx.spawn(Chain(journal_, levels_ - 1, fails_));
      return again();  // and joins its child
    }
    if (levels_ == 1 && fails_) return fail(Status(StatusCode::kNotFound, "no ground"));
    std::string result;
    for (const ChildOutcome& child : ctx.children()) result = child.result;
    journal_.note("up " + level);
    return done(result + level);
  }
  Outcome rollback(StepContext&) override {
    journal_.note("undo " + std::to_string(levels_));
    return undone();
  }

 private:
  Journal& journal_;
  std::uint64_t levels_;
  bool fails_;
  bool spawned_ = false;
};

struct ChainWorld {
  static inline bool fails = false;  // for all worlds of one test
  Journal journal;

  void add_types(ProcedureRegistry& registry) { registry.add<Chain>(journal); }
  Chain procedure() { return Chain(journal, 3, fails); }
  void check(const ProcedureResult& result, Findings& findings) const {
    findings.expect(result.status.ok() == !fails, "the root succeeds unless the chain fails");
    findings.expect(result.result == (fails ? "" : "123"), "results come up level by level");
    for (const char* level : {"1", "2", "3"}) {
      const bool undone = journal.count(std::string("undo ") + level) != 0;
      findings.expect(undone == fails, "every level is undone if the chain fails, else none is");
    }
  }
};

}  // namespace

TEST_CASE("a procedure without a table has one step, which spawns, joins, and is undone once") {
  const bool fails = GENERATE(false, true);
  EngineWorld engine;
  Journal journal;
  ExecutorOptions options = engine.options();
  options.registry.add<Chain>(journal);
  engine.open(std::move(options));
  const auto submitted = engine.executor().submit(Chain(journal, 3, fails));
  REQUIRE(submitted.ok());
  engine.executor().run_until_idle(1);
  CHECK(engine.describe(submitted->id).step_name == "EXECUTE");
  engine.run();

  CHECK(engine.result(submitted->id).result == (fails ? "" : "123"));
  CHECK(journal.entries() == (fails ? Entries{"down 3", "down 2", "undo 1", "undo 2", "undo 3"}
                                    : Entries{"down 3", "down 2", "up 1", "up 2", "up 3"}));
}

TEST_CASE("crashed anywhere, sequential procedures end, or are undone, level by level") {
  ChainWorld::fails = GENERATE(false, true);
  const CrashReport report = crash_everywhere<ChainWorld>({.twice = true});
  INFO(report.failure);
  CHECK(report.ok());
  CHECK(report.plays > 20);
}

}  // namespace pv2::testing::sequential_test
