// SPDX-License-Identifier: Apache-2.0
//
// The counter service on a network in memory that loses, repeats, delays, reorders and cuts, under
// a manual clock, on one thread: the service is killed again and again, with commits under way, and
// each seed is one history.

#include <pv2/base/random.h>
#include <pv2/rpc/fault_proxy.h>
#include <pv2/rpc/memory_transport.h>
#include <pv2/rpc/random_faults.h>
#include <pv2/rpc/rpc_client.h>
#include <pv2/store/memory_procedure_store.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fleet.h"
#include "pv2/testing/seeds.h"
#include "requests.h"
#include "service.h"
#include "support/catch.h"

namespace pv2::testing::counter_service_test {
namespace {

using counter::CounterService;
using counter::Dedup;
using counter::Fleet;
using counter::Way;
using std::chrono::milliseconds;
using std::chrono::seconds;

FaultRates rates() {
  return {.drop = 0.2, .duplicate = 0.05, .delay = 0.05, .reorder = 0.05, .cut = 0.01};
}

class History {
 public:
  History(std::uint64_t seed, Way way, Dedup dedup) : random_(seed), dedup_(dedup) {
    start();
    auto faults = RandomFaults::create({.seed = seed, .to_server = rates(), .to_client = rates()});
    REQUIRE(faults.ok());
    auto proxy = FaultProxy::open({.transport = transport_.get(),
                                   .listen = "network",
                                   .target = service_->address(),
                                   .plan = *std::move(faults)});
    REQUIRE(proxy.ok());
    proxy_ = *std::move(proxy);
    auto fleet = Fleet::open(
        {.transport = transport_,
         .address = "network",
         .way = way,
         .clients = 3,
         .work =
             {.increments = 120, .appends = 20, .in_flight = 4, .counters = 2, .purse_limit = 40},
         .seed = seed,
         .on_answer = [](std::uint64_t) {}});
    REQUIRE(fleet.ok());
    fleet_ = *std::move(fleet);
  }

  /// The first contradiction; empty if there is none.
  std::string run() {
    fleet_->start();
    for (int move = 0; move < 20'000 && !fleet_->has_finished(); ++move) one_move();
    if (!fleet_->has_finished()) return "the clients wait for ever";
    return check();
  }

 private:
  void start() {
    auto opened = CounterService::open({.transport = transport_,
                                        .listen = "server:0",
                                        .store = std::make_unique<MemoryProcedureStore>(disk_),
                                        .dedup = dedup_,
                                        .clock = clock_});
    REQUIRE(opened.ok());
    service_ = *std::move(opened);
  }
  // Only what was durable survives: what the old service still drains goes to a disk that nobody
  // reads.
  void kill() {
    const auto image = disk_->clone();
    service_.reset();
    // Sometimes for longer than a client waits for one call.
    if (random_.below(4) == 0) transport_->run_for(seconds(1 + random_.below(4)));
    disk_ = image;
    start();
    REQUIRE(proxy_->set_target(service_->address()).ok());
  }
  void one_move() {
    const std::uint64_t choice = random_.below(1000);
    if (choice < 500) {
      transport_->run_until_idle(1 + random_.below(30));
    } else if (choice < 700) {
      service_->store().pump();
    } else if (choice < 970) {
      transport_->run_for(milliseconds(1 + random_.below(100)));
    } else {
      kill();
    }
  }

  std::string check() {
    counter::AnswerLedger& ledger = fleet_->ledger();
    if (!ledger.first_contradiction().empty()) return ledger.first_contradiction();
    for (const std::string& name : ledger.counters()) {
      const std::uint64_t value = counter::parse_number(read("counter.get", name)).value_or(0);
      if (auto wrong = ledger.check_counter(name, value)) return *wrong;
    }
    for (const std::string& name : ledger.texts()) {
      if (auto wrong = ledger.check_text(name, read("text.get", name))) return *wrong;
    }
    return {};
  }
  std::string read(std::string method, const std::string& name) {
    const auto client =
        RpcClient::open({.transport = transport_, .addresses = {service_->address()}});
    REQUIRE(client.ok());
    std::optional<CallOutcome> outcome;
    (*client)->call(std::move(method), name, {.read_only = true},
                    [&](CallOutcome told) { outcome = std::move(told); });
    while (!outcome) transport_->run_for(seconds(1));
    REQUIRE(outcome->ok());
    return outcome->body;
  }

  Random random_;
  const Dedup dedup_;
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  std::shared_ptr<MemoryTransport> transport_ = std::make_shared<MemoryTransport>(clock_);
  std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
  std::unique_ptr<CounterService> service_;
  std::unique_ptr<FaultProxy> proxy_;
  std::unique_ptr<Fleet> fleet_;
};

}  // namespace

TEST_CASE("the counter service is exact in every history of losses and kills") {
  const Way way = GENERATE(Way::kNonce, Way::kSession);
  const Seeds seeds = seeds_from_environment(100);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    INFO("seed " << seed << ", way " << counter::to_string(way));
    REQUIRE(History(seed, way, Dedup::kOn).run().empty());
  }
}

TEST_CASE("the counter service without deduplication is caught in every history") {
  const Way way = GENERATE(Way::kNonce, Way::kSession);
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    INFO("seed " << seed << ", way " << counter::to_string(way));
    CHECK_FALSE(History(seed, way, Dedup::kOff).run().empty());
  }
}

}  // namespace pv2::testing::counter_service_test
