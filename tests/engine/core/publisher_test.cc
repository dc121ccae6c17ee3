// SPDX-License-Identifier: Apache-2.0
//
// A thread that has queued records, and has told nobody yet, tells the store before it does
// anything that may take long: work on a tree, a callback of the host, or a line for the log.

#include "core/publisher.h"

#include <pv2/store/noop_procedure_store.h>

#include "core/effects.h"
#include "pv2/engine/executor_options.h"
#include "quiet_hooks.h"
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
  Publisher publisher{core, [] {
                        PublisherHooks hooks = quiet_hooks();
                        hooks.do_tree_works = [](EngineCore&, Effects&) {
                          notes().emplace_back("section");
                          return --sections_left() > 0;
                        };
                        return hooks;
                      }()};
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

}  // namespace
}  // namespace pv2::testing::publisher_test
