// SPDX-License-Identifier: Apache-2.0
//
// A resource that several threads of one holder modify at once.

#include "pv2/idempotency/concurrent_resource.h"

#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "lock_service.h"
#include "support/catch.h"

namespace pv2::testing::concurrent_resource_test {
namespace {

using Number = ConcurrentResource<int>;

/// Holds up the thread that acquires, if a test wants it.
class SlowAdapter final : public ResourceAdapter<int> {
 public:
  explicit SlowAdapter(std::shared_ptr<LockService> service) : inner_(std::move(service), "A") {}
  [[nodiscard]] std::string name() const override { return inner_.name(); }
  [[nodiscard]] Fencing fencing() const override { return inner_.fencing(); }
  Result<FencingToken> acquire() override {
    if (before_acquire) before_acquire();
    return inner_.acquire();
  }
  Result<int> read(FencingToken token) override { return inner_.read(token); }

  std::function<void()> before_acquire;

 private:
  NumberAdapter inner_;
};

struct World {
  World() {
    auto slow = std::make_unique<SlowAdapter>(service);
    adapter = slow.get();
    ResourceOptions options;
    options.clock = clock;
    number = std::make_unique<Number>(std::move(slow), options);
  }
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<LockService> service = std::make_shared<LockService>();
  SlowAdapter* adapter = nullptr;
  std::unique_ptr<Number> number;
};

Status fails(const ResourceView<int>& /*view*/) {
  return Status(StatusCode::kIoError, "the connection was cut");
}
Status works(const ResourceView<int>& /*view*/) { return Status(); }

}  // namespace

TEST_CASE("V-12: changes of several threads run at the same time") {
  World world;
  const auto seen = world.number->look();
  std::latch all_inside(8);
  std::vector<std::thread> threads;
  std::atomic<int> done{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const Status status = world.number->modify(*seen, [&](const ResourceView<int>&) {
        all_inside.arrive_and_wait();  // for ever, if one waited for another
        return Status();
      });
      if (status.ok()) ++done;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(done == 8);
  CHECK(world.service->acquires() == 1);
}

TEST_CASE("V-13: changes that fail together are followed by one recovery") {
  World world;
  const auto seen = world.number->look();
  constexpr int kThreads = 100;
  std::latch all_inside(kThreads);
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const Status status = world.number->modify(*seen, [&](const ResourceView<int>& view) {
        all_inside.arrive_and_wait();
        return fails(view);
      });
      if (status.code() == StatusCode::kIoError) ++failed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == kThreads);
  CHECK(world.service->acquires() == 2);
  CHECK((*world.number->look())->version == 2);
}

TEST_CASE("V-14: while one thread recovers the others are refused at once, and then it is ready") {
  World world;
  const auto seen = world.number->look();
  std::vector<Status> meanwhile;
  world.adapter->before_acquire = [&] {
    CHECK(world.number->state() == ResourceState::kRecovering);
    meanwhile.push_back(world.number->modify(*seen, works));
    meanwhile.push_back(world.number->look().status());
  };
  CHECK(world.number->modify(*seen, fails).code() == StatusCode::kIoError);
  REQUIRE(meanwhile.size() == 2);
  for (const Status& status : meanwhile) {
    CHECK(status.code() == StatusCode::kUnavailable);
    CHECK_THAT(status.to_string(), ContainsSubstring("another thread is acquiring"));
  }
  CHECK(world.number->state() == ResourceState::kReady);
  CHECK((*world.number->look())->version == 2);
  CHECK(world.number->modify(*seen, works).code() == StatusCode::kFenced);
  CHECK(world.number->modify(*world.number->look(), works).ok());
}

TEST_CASE("V-09: a version is not given twice, whichever failure is followed by the recovery") {
  World world;
  const auto first = world.number->look();
  std::optional<Result<Number::View>> second;
  const Status late = world.number->modify(*first, [&](const ResourceView<int>& view) {
    // While this change is in the network, others fail, recover, and fail to recover.
    CHECK(world.number->modify(*first, fails).code() == StatusCode::kIoError);
    second = world.number->look();
    world.service->refuse_next_acquires(1);
    CHECK(world.number->modify(**second, fails).code() == StatusCode::kIoError);
    world.clock->advance(std::chrono::seconds(10));
    return fails(view);
  });
  CHECK(late.code() == StatusCode::kIoError);
  CHECK((*world.number->look())->version == 3);
  CHECK(world.number->modify(**second, works).code() == StatusCode::kFenced);
}

TEST_CASE("V-15: a concurrent resource survives recoveries that fail, and one that throws") {
  World world;
  const auto seen = world.number->look();
  bool throws = true;
  world.adapter->before_acquire = [&] {
    if (std::exchange(throws, false)) throw std::runtime_error("no memory");
  };
  CHECK_THROWS_AS(world.number->modify(*seen, fails), std::runtime_error);
  CHECK(world.number->state() == ResourceState::kBroken);
  world.service->refuse_next_acquires(2);
  CHECK(world.number->modify(*seen, works).code() == StatusCode::kUnavailable);
  CHECK(world.number->look().status().code() == StatusCode::kUnavailable);
  world.clock->advance(std::chrono::seconds(10));
  CHECK(world.number->look().status().code() == StatusCode::kUnavailable);
  world.clock->advance(std::chrono::seconds(10));
  CHECK(world.number->look().ok());
  CHECK(world.number->state() == ResourceState::kReady);
  CHECK(world.number->modify(*seen, works).code() == StatusCode::kFenced);
  CHECK(world.number->modify(*world.number->look(), works).ok());
}

TEST_CASE("V-18: an exception of a concurrent change is passed on after the recovery") {
  World world;
  const auto seen = world.number->look();
  const auto throws = [](const ResourceView<int>&) -> Status { throw std::logic_error("x"); };
  CHECK_THROWS_AS(world.number->modify(*seen, throws), std::logic_error);
  CHECK(world.service->acquires() == 2);
  CHECK(world.number->state() == ResourceState::kReady);
}

}  // namespace pv2::testing::concurrent_resource_test
