// SPDX-License-Identifier: Apache-2.0
//
// Remote executors on a network that loses, repeats, reorders and cuts, with servers that die: each
// procedure that was submitted runs once, and each client learns what became of it.

#include <pv2/rpc/random_faults.h>

#include <algorithm>
#include <set>

#include "remote/remote_world.h"

namespace pv2::testing::remote_faults_test {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<FaultPlan> bad_network(std::uint64_t seed) {
  const FaultRates rates{.drop = 0.2, .duplicate = 0.1, .delay = 0.2, .reorder = 0.1, .cut = 0.02};
  auto plan = RandomFaults::create({.seed = seed, .to_server = rates, .to_client = rates});
  REQUIRE(plan.status().to_string() == "OK");
  return *std::move(plan);
}

// One procedure, from its submission to the acknowledgement of its result.
struct Story {
  std::string job;
  Nonce nonce{};
  ProcedureId id{};
  std::optional<std::string> result{};
  bool signalled = false;
  bool over = false;
};

// Goes through the story of one procedure, asking again as long as an outcome is unknown.
class Customer {
 public:
  Customer(RemoteWorld& world, Story& story) : world_(world), story_(story) {}

  void submit() {
    world_.remote->resume(story_.nonce, Job(world_.engine.world, story_.job), {.timeout = 5s},
                          [this](const SubmitOutcome& outcome) {
                            if (!outcome.ok()) return submit();
                            story_.id = outcome.id;
                            signal();
                          });
  }

 private:
  void signal() {
    world_.remote->signal(story_.id, "go", story_.job, {}, [this](const RemoteOutcome& outcome) {
      story_.signalled = outcome.ok();
      wait();
    });
  }
  void wait() {
    world_.remote->wait(story_.id, {}, [this](const Result<ProcedureResult>& result) {
      if (!result.ok()) return wait();
      story_.result = result->result;
      acknowledge();
    });
  }
  void acknowledge() {
    world_.remote->acknowledge(story_.id, [this](const RemoteOutcome& outcome) {
      if (!outcome.ok()) return acknowledge();
      story_.over = true;
    });
  }

  RemoteWorld& world_;
  Story& story_;
};

}  // namespace

TEST_CASE("on a bad network every procedure runs once, and every signal arrives once") {
  const std::uint64_t seed = GENERATE(range(1, 11));
  CAPTURE(seed);
  RemoteWorld world;
  world.plan = bad_network(seed);
  std::vector<Story> stories(20);
  std::vector<Customer> customers;
  customers.reserve(stories.size());
  for (std::size_t i = 0; i < stories.size(); ++i) {
    stories[i].job = "job" + std::to_string(i);
    stories[i].nonce = {7, i + 1};
  }
  world.begin();
  for (const Story& story : stories) {
    world.engine.world.scripts[story.job] = world.engine.world.scripts["w"];
  }

  for (Story& story : stories) customers.emplace_back(world, story).submit();
  world.run_until([&] {
    return std::all_of(stories.begin(), stories.end(), [](const Story& s) { return s.over; });
  });

  for (const Story& story : stories) {
    CAPTURE(story.job);
    CHECK(story.signalled);
    CHECK(story.result == story.job + " done");
    CHECK(world.count("do " + story.job + ".1") == 1);
    CHECK(world.count("got " + story.job) == 1);
  }
  CHECK(world.service->counts().waits == 0);
  CHECK(world.service->counts().waited_for == 0);
  CHECK(world.proxy->counters().to_server.dropped > 0);
}

TEST_CASE("on a bad network, with a server that dies, no submission is lost or done twice") {
  const std::uint64_t seed = GENERATE(range(1, 11));
  CAPTURE(seed);
  RemoteWorld world;
  world.plan = bad_network(seed);
  world.begin();
  constexpr std::uint64_t kJobs = 10;
  std::vector<std::optional<SubmitOutcome>> outcomes(kJobs);

  for (std::uint64_t i = 0; i < kJobs; ++i) {
    world.remote->submit(
        Job(world.engine.world, "a"), {.nonce = {7, i + 1}},
        [&outcomes, i](SubmitOutcome outcome) { outcomes[i].emplace(std::move(outcome)); });
    world.transport->run_for(i * 100ms);
    if (i % 2 == 0) world.settle();
    if (i % 3 == 2) world.crash_server();
  }
  world.run_until([&] {
    return std::all_of(outcomes.begin(), outcomes.end(), [](const auto& o) { return !!o; });
  });

  std::set<ProcedureId> ids;
  for (std::uint64_t i = 0; i < kJobs; ++i) {
    CAPTURE(i);
    REQUIRE(words(*outcomes[i]) == "OK");
    ids.insert(outcomes[i]->id);
    CHECK(world.wait(outcomes[i]->id)->result == "a done");
  }
  CHECK(ids.size() == kJobs);
  CHECK(world.submit("b").id.value != 0);
}

}  // namespace pv2::testing::remote_faults_test
