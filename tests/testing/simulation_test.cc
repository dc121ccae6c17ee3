// SPDX-License-Identifier: Apache-2.0
//
// The simulation itself: it accepts a procedure that is written as it should be, finds each defect
// of the others, repeats it from its seed, and shrinks it to the moves that matter. (What the
// engine does under it is in tests/simulation.)

#include "pv2/testing/simulation.h"

#include <pv2/engine/async_executor.h>
#include <pv2/engine/procedure_registry.h>

#include <csignal>
#include <cstdlib>
#include <vector>

#include "pv2/testing/keyed_client.h"
#include "support/catch.h"
#include "testing/shop.h"

namespace pv2::testing::simulation_test {
namespace {

// [region story]
// Three customers, one order each.
template <Defect kDefect>
class ShopStory final : public SimulationStory {
 public:
  using Order = PlaceOrder<kDefect, true>;

  explicit ShopStory(std::uint64_t /*seed*/) {
    for (std::uint64_t i = 1; i <= 3; ++i) customers_.emplace_back(Nonce{1, i});
  }

  void add_types(ProcedureRegistry& types) override { types.add<Order>(shop_); }
  [[nodiscard]] std::size_t operations() const override { return customers_.size(); }
  [[nodiscard]] std::string operation_words(std::size_t index) const override {
    return "customer " + std::to_string(index) + " orders";
  }
  void operate(std::size_t index, ProcedureExecutor& executor) override {
    began_.insert(index);
    customers_[index].submit(executor, Order(shop_, "order " + std::to_string(index)));
  }
  void begin_life(ProcedureExecutor& executor) override {
    for (KeyedClient& customer : customers_) customer.begin_life();
    for (const std::size_t index : began_) operate(index, executor);
  }
  void check_end(SimulationEnd& end) override {
    for (const std::size_t index : began_) {
      const KeyedClient& customer = customers_[index];
      if (!customer.trouble().empty()) end.findings.add(customer.trouble());
      const std::string parcel = "parcel of order " + std::to_string(index);
      end.findings.expect(customer.result() && customer.result()->result == parcel,
                          "each customer gets his parcel");
    }
    end.findings.expect(shop_.money == static_cast<int>(5 * began_.size()),
                        "each customer pays once");
  }

 private:
  Shop shop_;
  std::vector<KeyedClient> customers_;
  std::set<std::size_t> began_;
};
// [/region]

template <Defect kDefect>
SimulationReport simulate_shop(SimulationOptions options = {.seeds = 300}) {
  return simulate([](std::uint64_t seed) { return std::make_unique<ShopStory<kDefect>>(seed); },
                  options);
}

// How many moves a failure tells.
std::size_t moves_in(const std::string& words) {
  std::size_t moves = 0;
  while (words.find("  " + std::to_string(moves + 1) + ". ") != std::string::npos) ++moves;
  return moves;
}

}  // namespace

TEST_CASE("the simulation accepts a procedure that copes with everything it does") {
  const SimulationReport report = simulate_shop<Defect::kNone>();

  CHECK(report.failure == "");
  CHECK(report.seeds == 300);
  CHECK(report.lives > 300);
  CHECK(report.steps >= 300 * 3 * 3);
}

TEST_CASE(
    "the simulation finds an effect that happens twice, and shrinks the moves that lead to it") {
  const SimulationReport report = simulate_shop<Defect::kChargesTwice>();

  REQUIRE(!report.ok());
  CHECK_THAT(report.failure, ContainsSubstring("each customer pays once"));
  CHECK_THAT(report.failure, ContainsSubstring(" orders\n"));
  CHECK(moves_in(report.failure) <= 6);
}

TEST_CASE("the simulation finds a member that fields() does not name") {
  const SimulationReport report = simulate_shop<Defect::kForgetsParcel>();

  REQUIRE(!report.ok());
  CHECK_THAT(report.failure, ContainsSubstring("each customer gets his parcel"));
}

TEST_CASE("the simulation finds a procedure that does not end after a crash") {
  const SimulationReport report = simulate_shop<Defect::kNeverShips>();

  REQUIRE(!report.ok());
  CHECK_THAT(report.failure, ContainsSubstring("runs on and on"));
}

TEST_CASE("the same seed gives the same failure of the simulation") {
  const SimulationReport first = simulate_shop<Defect::kChargesTwice>();
  REQUIRE(!first.ok());

  const SimulationReport again =
      simulate_shop<Defect::kChargesTwice>({.first_seed = first.failing_seed, .seeds = 1});
  CHECK(again.failure == first.failure);
  const SimulationReport inline_too = simulate_shop<Defect::kChargesTwice>(
      {.first_seed = first.failing_seed, .seeds = 1, .isolated = false});
  CHECK(inline_too.failure == first.failure);
}

namespace {

// Ends the process when a crash makes its step run again.
class FatalStory final : public SimulationStory {
 public:
  enum class Step { kOnly = 1 };
  class Fatal final : public StateMachineProcedure<Step> {
   public:
    static constexpr std::string_view kType = "test.Fatal";
    static constexpr auto kSteps = steps(step(Step::kOnly, "ONLY", kUndoable));
    explicit Fatal(int& runs) : runs_(runs) {}
    void fields(auto& /*f*/) {}
    Flow execute_from_state(Step /*step*/, StepContext& /*ctx*/) override {
      if (runs_++ > 0) std::abort();
      return done();
    }

   private:
    int& runs_;
  };

  void add_types(ProcedureRegistry& types) override { types.add<Fatal>(runs_); }
  [[nodiscard]] std::size_t operations() const override { return 1; }
  [[nodiscard]] std::string operation_words(std::size_t /*index*/) const override {
    return "it begins";
  }
  void operate(std::size_t /*index*/, ProcedureExecutor& executor) override {
    executor.async().submit(Fatal(runs_), {.nonce = {1, 1}}, [](const Result<Submitted>&) {});
  }
  void check_end(SimulationEnd& /*end*/) override {}

 private:
  int runs_ = 0;
};

}  // namespace

TEST_CASE("a run that ends the process is reported as a failure, with its seed and its moves") {
  const SimulationReport report =
      simulate([](std::uint64_t) { return std::make_unique<FatalStory>(); }, {.seeds = 300});

  REQUIRE(!report.ok());
  CHECK_THAT(report.failure, ContainsSubstring("the process died of Aborted"));
  CHECK_THAT(report.failure, ContainsSubstring("it begins"));
  CHECK(moves_in(report.failure) <= 5);
}

TEST_CASE("a simulation hears how its children ended in a program that ignores SIGCHLD") {
  const auto before = std::signal(SIGCHLD, SIG_IGN);

  const SimulationReport report =
      simulate([](std::uint64_t) { return std::make_unique<FatalStory>(); }, {.seeds = 300});

  CHECK(std::signal(SIGCHLD, before) == SIG_IGN);  // the program's own is put back
  CHECK_THAT(report.failure, ContainsSubstring("the process died of Aborted"));
}

}  // namespace pv2::testing::simulation_test
