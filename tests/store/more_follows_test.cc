// SPDX-License-Identifier: Apache-2.0
//
// What the committer says of a unit: that more follows, if its own thread is about to write again.

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "committer.h"
#include "pv2/base/mutex.h"
#include "support/catch.h"

namespace pv2::testing::more_follows_test {
namespace {

struct Request final : CommitRequest {
  Request() { batch.put(Space::kHost, "key", "value"); }
};

// One word for each call.
class SayingSink final : public CommitSink {
 public:
  void on_committed(CommitList) noexcept override { add("end"); }
  void on_committed_more_follows(CommitList) noexcept override { add("more"); }
  std::vector<std::string> wait_for(std::size_t calls) {
    MutexLock lock(said_mutex_);
    while (said_.size() < calls) came_.wait(said_mutex_);
    return said_;
  }

 private:
  void add(const char* word) {
    MutexLock lock(said_mutex_);
    said_.emplace_back(word);
    came_.notify_all();
  }
  Mutex said_mutex_;
  CondVar came_;
  std::vector<std::string> said_ PV2_GUARDED_BY(said_mutex_);
};

struct Ground final : UnitWriter {
  using Thread = Committer::Thread;

  Status answer;
  int ended = 0;
  bool queues_one = false;
  SayingSink sink;
  std::deque<Request> requests{4};
  Committer committer;

  explicit Ground(Thread thread, StoreLimits unit = {1000, 1 << 20})
      : committer("a store", *this, sink, CommitSequence{},
                  {.thread = thread, .limits = {1000, 1 << 20}, .unit_size = unit}) {}
  Status write(const CommitList&) override {
    if (std::exchange(queues_one, false)) committer.commit(requests[1]);
    return answer;
  }
  void writing_ended() noexcept override { ++ended; }
  CommitList list(std::size_t count) {
    CommitList all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(requests[i]);
    return all;
  }
};

using Words = std::vector<std::string>;
constexpr StoreLimits kOneEach{1, 1 << 20};

TEST_CASE("more follows if something was queued during the write") {
  Ground ground(Ground::Thread::kOwn);
  ground.queues_one = true;
  ground.committer.commit(ground.requests[0]);
  CHECK(ground.sink.wait_for(2) == Words{"more", "end"});
  ground.committer.close();
}

TEST_CASE("more follows if what was queued does not fit one unit") {
  Ground ground(Ground::Thread::kOwn, kOneEach);
  CommitList all = ground.list(3);
  ground.committer.commit_all(all);
  CHECK(ground.sink.wait_for(3) == Words{"more", "more", "end"});
  ground.committer.close();
}

TEST_CASE("nothing more is promised after a failure") {
  Ground ground(Ground::Thread::kOwn);
  ground.queues_one = true;
  ground.answer = Status(StatusCode::kIoError, "the disk is gone");
  ground.committer.commit(ground.requests[0]);
  CHECK(ground.sink.wait_for(2) == Words{"end", "end"});
  ground.committer.close();
}

TEST_CASE("the writer is told once that a unit has failed, also if it has never seen that unit") {
  const bool is_too_large = GENERATE(false, true);
  Ground ground(Ground::Thread::kCaller, kOneEach);
  ground.committer.commit(ground.requests[0]);
  ground.committer.pump();
  CHECK(ground.ended == 0);
  if (is_too_large) {
    ground.requests[1].batch.put(Space::kHost, "large", std::string(2 << 20, 'v'));
  } else {
    ground.answer = Status(StatusCode::kIoError, "the disk is gone");
  }
  ground.committer.commit(ground.requests[1]);
  ground.committer.pump();
  CHECK(ground.ended == 1);
  ground.committer.commit(ground.requests[2]);
  ground.committer.pump();
  CHECK(ground.ended == 1);
  ground.committer.close();
}

TEST_CASE("a thread that writes in the place of the committer's promises nothing") {
  Ground ground(Ground::Thread::kOwn, kOneEach);
  std::size_t calls = 0;
  for (;;) {  // the committer's thread may be awake at first
    CommitList all = ground.list(1);
    ground.committer.queue_all(all);
    if (ground.committer.write_queued() != Written::kNothing) break;
    ground.committer.wake_writer();
    ground.sink.wait_for(++calls);
  }
  calls = ground.sink.wait_for(calls + 1).size();
  CommitList all = ground.list(2);
  ground.committer.queue_all(all);
  REQUIRE(ground.committer.write_queued() == Written::kAll);
  CHECK(ground.sink.wait_for(calls + 2) == Words(calls + 2, "end"));
  ground.committer.close();
}

TEST_CASE("a committer that is pumped promises nothing") {
  Ground ground(Ground::Thread::kCaller, kOneEach);
  CommitList all = ground.list(3);
  ground.committer.commit_all(all);
  ground.committer.pump();
  CHECK(ground.sink.wait_for(3) == Words{"end", "end", "end"});
}

}  // namespace
}  // namespace pv2::testing::more_follows_test
