// SPDX-License-Identifier: Apache-2.0
//
// A thread that has queued records, and has told nobody yet, tells the store before it does
// anything that may take long: work on a tree, a callback of the host, or a line for the log. And
// which lists the committer leaves to workers.

#include "core/publisher.h"

#include <pv2/store/noop_procedure_store.h>

#include <deque>

#include "core/effects.h"
#include "model/requests.h"
#include "pv2/engine/executor_options.h"
#include "support/catch.h"
#include "support/wrapped_store.h"

namespace pv2::testing::publisher_test {
namespace {

using Notes = std::vector<std::string>;

Notes& notes() {
  static Notes all;
  return all;
}

class NotingStore final : public WrappedStore {
 public:
  NotingStore() : WrappedStore(noop()) {}
  CommitAnswer queue_all(CommitList& requests) override {
    notes().emplace_back("queued");
    requests = CommitList();
    return CommitAnswer::kQueued;
  }
  void wake_writer() override { notes().emplace_back("told"); }
};

struct Ground {
  EngineCore core{[] {
    ExecutorOptions options;
    options.store = std::make_unique<NotingStore>();
    options.workers = 0;
    options.log = [](LogLevel, std::string_view) { notes().emplace_back("logged"); };
    return options;
  }()};
  Publisher publisher{core,
                      {.do_tree_works =
                           [](EngineCore&, Effects&) {
                             notes().emplace_back("section");
                             return --sections_left() > 0;
                           },
                       .go_on_with_sorted = [](EngineCore&, TreeWork&) {},
                       .sort_collected = [](TreeWork&) {},
                       .carry_out_waiting_orders = [](EngineCore&, Effects&) {},
                       .audit_now_and_then = [](EngineCore&) {},
                       .store_failed = [](EngineCore&, Effects&) {},
                       .timers_moved = [] {}}};
  struct Request final : CommitRequest {
  } request;
  Effects effects;

  Ground() {
    notes().clear();
    effects.caller_writes = true;
    effects.commits.push_back(request);
  }
  static int& sections_left() {
    static int left = 0;
    return left;
  }
};

TEST_CASE("what a thread has queued waits for one section of work on a tree at most") {
  Ground ground;
  ground.core.tree_work_waits = true;
  Ground::sections_left() = 2;

  ground.publisher.perform(ground.effects);

  CHECK(notes() == Notes{"queued", "section", "told", "section"});
}

TEST_CASE("what a thread has queued does not wait for the log") {
  Ground ground;
  ground.effects.log(LogLevel::kInfo, "something");

  ground.publisher.perform(ground.effects);

  CHECK(notes() == Notes{"queued", "told", "logged"});
}

TEST_CASE("what a thread has queued does not wait for a callback of the host") {
  Ground ground;
  ground.effects.reply(
      Reply<Status>{[](const Status&) { notes().emplace_back("called"); }, ReplyOn::kEngine},
      Status());

  ground.publisher.perform(ground.effects);

  CHECK(notes() == Notes{"queued", "told", "called"});
}

// A request that counts how often it was published.
struct Counted final : EngineRequest {
  void published(EngineCore&, Effects&) override { ++count; }
  void failed(EngineCore&, const RequestFailure&, Effects&) override {}
  int count = 0;
};

struct Written {
  Ground ground;
  std::deque<Counted> requests;

  // Gives the publisher `size` requests more, as the store's thread does.
  bool give(std::size_t size) {
    CommitList list;
    for (std::size_t i = 0; i < size; ++i) list.push_back(requests.emplace_back());
    return ground.publisher.on_written(std::move(list));
  }
  [[nodiscard]] int published() const {
    int sum = 0;
    for (const Counted& request : requests) sum += request.count;
    return sum;
  }
};

TEST_CASE("the store's thread leaves a list to a worker that is awake, if it is worth it") {
  const std::size_t idle = GENERATE(0U, 1U);
  const bool comes = GENERATE(true, false);
  Written written;
  written.ground.core.running_workers = 2;
  written.ground.core.idle_workers = idle;

  CHECK(written.give(16));

  CHECK(written.published() == 0);
  CHECK(written.ground.publisher.has_committed());
  comes ? written.ground.publisher.publish_committed() : written.ground.publisher.on_quiet();
  CHECK(written.published() == 16);
}

TEST_CASE("the store's thread publishes what is short, or what no worker would come for") {
  Written written;
  written.ground.core.running_workers = 2;
  std::size_t size = 16;

  SECTION("the list is short") { size = 15; }
  SECTION("all workers are idle") { written.ground.core.idle_workers = 2; }
  SECTION("no worker runs yet") { written.ground.core.running_workers = 0; }

  CHECK_FALSE(written.give(size));
  CHECK(written.published() == static_cast<int>(size));
}

TEST_CASE("a long list is left to a worker that is idle") {
  Written written;
  written.ground.core.running_workers = 1;
  written.ground.core.idle_workers = 1;
  CHECK(written.give(256));
  CHECK(written.published() == 0);
  written.ground.publisher.on_quiet();
  CHECK(written.published() == 256);
}

TEST_CASE("the store's thread publishes itself when no worker has come for a while") {
  Written written;
  written.ground.core.running_workers = 1;
  while (written.give(16)) {
  }
  CHECK(written.published() == static_cast<int>(written.requests.size()));
}

}  // namespace
}  // namespace pv2::testing::publisher_test
