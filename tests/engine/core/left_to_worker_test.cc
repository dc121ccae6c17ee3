// SPDX-License-Identifier: Apache-2.0
//
// What the publisher leaves to an idle worker, and for how long. There are no workers here: the
// test counts for them.

#include <pv2/scheduler/master_procedure_scheduler.h>
#include <pv2/store/noop_procedure_store.h>

#include <deque>
#include <memory>

#include "core/effects.h"
#include "core/publisher.h"
#include "pv2/engine/executor_options.h"
#include "quiet_hooks.h"
#include "support/catch.h"

namespace pv2::testing::left_to_worker_test {
namespace {

class NudgedScheduler final : public MasterProcedureScheduler {
 public:
  NudgedScheduler(const Clock& clock, int& nudges)
      : MasterProcedureScheduler(clock), nudges_(nudges) {}
  void nudge() override { ++nudges_; }

 private:
  int& nudges_;
};

struct Ground {
  int nudges = 0;
  int published = 0;
  ManualClock clock;
  EngineCore core{[this] {
    ExecutorOptions options;
    options.store = noop();
    options.scheduler = std::make_unique<NudgedScheduler>(clock, nudges);
    options.workers = 0;
    options.log = {};
    return options;
  }()};
  Publisher publisher{core, quiet_hooks()};
  struct Counted final : EngineRequest {
    explicit Counted(int& count) : published_so_far(count) {}
    void published(EngineCore&, Effects&) override { ++published_so_far; }
    void failed(EngineCore&, const RequestFailure&, Effects&) override {}
    int& published_so_far;
  };
  std::deque<Counted> requests;

  CommitList list(int count) {
    CommitList all;
    for (int i = 0; i < count; ++i) all.push_back(requests.emplace_back(published));
    return all;
  }
};

TEST_CASE("while the store goes on, durable records are left to an idle worker, but once only") {
  Ground ground;
  ground.core.idle_workers = 1;
  ground.publisher.on_committed_more_follows(ground.list(8));
  CHECK(ground.nudges == 1);
  CHECK(ground.published == 0);
  CHECK(ground.publisher.has_committed());

  const bool more_follows = GENERATE(false, true);
  if (more_follows) {
    ground.publisher.on_committed_more_follows(ground.list(8));
  } else {
    ground.publisher.on_committed(ground.list(300));
  }
  CHECK(ground.nudges == 1);
  CHECK(ground.published == (more_follows ? 16 : 308));
  CHECK_FALSE(ground.publisher.has_committed());
}

TEST_CASE("when the store has written everything, only a long list is left to an idle worker") {
  Ground ground;
  ground.core.idle_workers = 1;
  ground.publisher.on_committed(ground.list(255));
  CHECK(ground.nudges == 0);
  CHECK(ground.published == 255);

  ground.publisher.on_committed(ground.list(256));
  CHECK(ground.nudges == 1);
  CHECK(ground.published == 255);
  ground.publisher.publish_committed();
  CHECK(ground.published == 255 + 256);
}

TEST_CASE("an idle worker is preferred to one in a short run") {
  Ground ground;
  ground.core.idle_workers = 1;
  const auto run = ground.core.short_runs.enter();
  ground.publisher.on_committed_more_follows(ground.list(8));
  CHECK(ground.nudges == 1);
  CHECK(ground.published == 0);
  ground.core.short_runs.leave(run);
}

TEST_CASE("nothing is left twice to the same run") {
  Ground ground;
  const auto run = ground.core.short_runs.enter();
  ground.publisher.on_committed_more_follows(ground.list(8));
  CHECK(ground.published == 0);
  ground.publisher.on_committed_more_follows(ground.list(8));
  CHECK(ground.published == 16);
  ground.publisher.on_committed_more_follows(ground.list(8));
  CHECK(ground.published == 24);
  ground.core.short_runs.leave(run);

  const auto next = ground.core.short_runs.enter();
  ground.publisher.on_committed_more_follows(ground.list(8));
  CHECK(ground.published == 24);
  ground.core.short_runs.leave(next);
}

}  // namespace
}  // namespace pv2::testing::left_to_worker_test
