// SPDX-License-Identifier: Apache-2.0
//
// A resource behind a lock service, modified by one holder at a time. Names such as V-09 are those
// of the mechanisms; tests/idempotency/README.md lists them all.

#include "pv2/idempotency/exclusive_resource.h"

#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lock_service.h"
#include "pv2/idempotency/fingerprint.h"
#include "pv2/idempotency/server_nonce_manager.h"
#include "pv2/idempotency/with_retry.h"
#include "support/catch.h"

namespace pv2::testing::exclusive_resource_test {
namespace {

using Number = ExclusiveResource<int>;

struct World {
  std::unique_ptr<Number> client(const std::string& name, Fencing fencing = {}) {
    ResourceOptions options;
    options.clock = clock;
    options.log = [this](LogLevel, std::string_view line) { log.emplace_back(line); };
    return std::make_unique<Number>(std::make_unique<NumberAdapter>(service, name, fencing),
                                    std::move(options));
  }
  /// Adds one, with the view's token.
  auto add_one() {
    return [this](const ResourceView<int>& view) -> Result<int> {
      const int next = view.info + 1;
      const Status status = service->write(next, view.token);
      return status.ok() ? Result<int>(next) : status;
    };
  }
  static Result<int> fails(const ResourceView<int>& /*view*/) {
    return Status(StatusCode::kIoError, "the connection was cut");
  }

  std::vector<std::string> log;
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<LockService> service = std::make_shared<LockService>();
};

/// A state whose next move finds no memory if `*is_full`.
struct Heavy {
  Heavy(int number, bool* full) : value(number), is_full(full) {}
  Heavy(Heavy&& other) : value(other.value), is_full(other.is_full) {  // NOLINT: it throws
    if (std::exchange(*is_full, false)) throw std::bad_alloc();
  }
  int value;
  bool* is_full;
};
struct HeavyAdapter final : ResourceAdapter<Heavy> {
  HeavyAdapter(std::shared_ptr<LockService> service, bool* full)
      : inner(std::move(service), "A"), is_full(full) {}
  [[nodiscard]] std::string name() const override { return inner.name(); }
  [[nodiscard]] Fencing fencing() const override { return inner.fencing(); }
  Result<FencingToken> acquire() override { return inner.acquire(); }
  Result<Heavy> read(FencingToken token) override { return Heavy(*inner.read(token), is_full); }
  NumberAdapter inner;
  bool* is_full;
};

}  // namespace

TEST_CASE("V-01: a holder that slept while another one incremented does not overwrite it") {
  World world;
  const auto a = world.client("A"), b = world.client("B");
  const auto seen_by_a = a->look();                             // (1), (2) A locks X and reads 1
  CHECK(b->modify(*b->look(), world.add_one()).ok());           // (3), (4) A sleeps; B writes 2
  REQUIRE(world.service->acquire("A").ok());                    // (5) X is A's again
  const Status first = a->modify(*seen_by_a, world.add_one());  // (6) A wakes up and writes
  CHECK(first.code() == StatusCode::kFenced);                   // V-02: retryable, not executed
  CHECK_THAT(first.to_string(), ContainsSubstring("this process has acquired it again"));
  CHECK(world.service->value() == 2);
  CHECK(a->modify(*seen_by_a, world.add_one()).code() == StatusCode::kFenced);
  CHECK(a->modify(*a->look(), world.add_one()).ok());
  CHECK(world.service->value() == 3);
}

TEST_CASE("V-01: a resource that compares no tokens loses the increment of the other holder") {
  World world;  // the control
  world.service = std::make_shared<LockService>(false);
  const auto a = world.client("A"), b = world.client("B");
  const auto seen_by_a = a->look();
  CHECK(b->modify(*b->look(), world.add_one()).ok());
  CHECK(a->modify(*seen_by_a, world.add_one()).ok());
  CHECK(world.service->value() == 2);
}

TEST_CASE("V-03, V-04: two contenders that repeat look, check and modify lose no increment") {
  World world;
  constexpr int kEach = 200;
  std::vector<std::thread> contenders;
  for (const char* const name : {"A", "B"}) {
    contenders.emplace_back([&world, name] {
      const auto number = world.client(name);
      for (int i = 0; i < kEach; ++i) {
        // Nobody moves the clock: each attempt that is refused is followed by another one at once.
        while (!number->modify(*number->look(), world.add_one()).ok()) {
        }
      }
    });
  }
  for (std::thread& contender : contenders) contender.join();
  CHECK(world.service->value() == 1 + 2 * kEach);
}

TEST_CASE("V-05, V-06, V-11: without faults the lock is acquired once and the state is read once") {
  World world;
  const auto number = world.client("A");
  CHECK(number->open().ok());
  for (int i = 0; i < 10; ++i) CHECK(number->modify(*number->look(), world.add_one()).ok());
  CHECK(world.service->acquires() == 1);
  CHECK(world.service->reads() == 1);
  CHECK(world.service->writes() == 10);
  CHECK((*number->look())->info == 11);
}

TEST_CASE("V-07: a change that fails is not seen in the cached state") {
  World world;
  const auto number = world.client("A");
  const auto seen = number->look();
  CHECK_FALSE(number->modify(*seen, World::fails).ok());
  CHECK((*number->look())->info == 1);
  world.service->refuse_next_acquires(1);
  CHECK_FALSE(number->modify(*number->look(), World::fails).ok());
  CHECK((*number->look())->info == 1);
}

TEST_CASE(
    "V-07: a write whose answer is lost is repeated under its key, and moves the value once") {
  World world;
  ServerNonceManager nonces;  // the resource's
  const NonceRequest key{.nonce = {1, 1}, .fingerprint = fingerprint_of({"add one"})};
  const auto number = world.client("A");
  bool loses_answer = true;
  const auto add_one_under_key = [&](const ResourceView<int>& view) -> Result<int> {
    auto answer = nonces.begin(key);
    if (!answer.ok()) return answer.status();
    if (!answer->runs()) return std::stoi(*answer->result);
    const Status status = world.service->write(view.info + 1, view.token);
    if (!status.ok()) {
      answer->owner.fail();
      return status;
    }
    answer->owner.succeed(std::to_string(view.info + 1));
    if (std::exchange(loses_answer, false)) {
      return Status(StatusCode::kUnknownOutcome, "no answer");
    }
    return view.info + 1;
  };
  CHECK(number->modify(*number->look(), add_one_under_key).code() == StatusCode::kUnknownOutcome);
  CHECK(number->modify(*number->look(), add_one_under_key).ok());
  CHECK(world.service->value() == 2);
  CHECK((*number->look())->info == 2);
}

TEST_CASE("V-08, V-16: a view is of one moment, whatever happens beside it") {
  World world;
  const auto number = world.client("A");
  REQUIRE(number->open().ok());
  std::atomic<bool> over{false}, torn{false};
  std::thread reader([&] {
    std::uint64_t last = 0;
    while (!over) {
      const auto view = *number->look();
      // Both grow with each recovery.
      if (view->version != view->token.epoch || view->version < last) torn = true;
      last = view->version;
    }
  });
  for (int i = 0; i < 200; ++i) (void)number->modify(*number->look(), World::fails);
  over = true;
  reader.join();
  CHECK_FALSE(torn);
  CHECK((*number->look())->version == 201);
}

TEST_CASE("V-09: what was checked before a recovery is refused, and nothing is written") {
  World world;
  const auto number = world.client("A");
  const auto seen = number->look();
  (void)number->modify(*seen, World::fails);
  const Status refused = number->modify(*seen, world.add_one());
  CHECK(refused.code() == StatusCode::kFenced);
  CHECK_THAT(refused.to_string(), ContainsSubstring("this process has acquired number X again"));
  CHECK(world.service->writes() == 0);
  CHECK(number->modify(nullptr, world.add_one()).code() == StatusCode::kFenced);
}

TEST_CASE("V-10: of many changes that fail at once one recovers, and the others are refused") {
  World world;
  const auto number = world.client("A");
  const auto seen = number->look();
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int i = 0; i < 50; ++i) {
    threads.emplace_back([&] {
      if (!number->modify(*seen, World::fails).ok()) ++failed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 50);
  CHECK(world.service->acquires() == 2);
}

TEST_CASE("V-15: a recovery that fails is tried again after a back-off, until it works") {
  World world;
  const auto number = world.client("A");
  const auto seen = number->look();
  world.service->refuse_next_acquires(3);
  const Status failed = number->modify(*seen, World::fails);
  CHECK(failed.code() == StatusCode::kIoError);  // V-18: the change's own failure
  CHECK_THAT(failed.to_string(), ContainsSubstring("this process could not acquire it again"));
  CHECK(number->state() == ResourceState::kBroken);

  const Status at_once = number->modify(*seen, world.add_one());
  CHECK(at_once.code() == StatusCode::kUnavailable);
  CHECK_THAT(at_once.to_string(), ContainsSubstring("the lock service does not answer"));
  CHECK(world.service->acquires() == 2);  // the back-off is not over
  world.clock->advance(std::chrono::milliseconds(100));
  CHECK(number->modify(*seen, world.add_one()).code() == StatusCode::kUnavailable);
  world.clock->advance(std::chrono::milliseconds(100));
  CHECK(number->modify(*seen, world.add_one()).code() == StatusCode::kUnavailable);
  CHECK(world.service->acquires() == 3);  // the second back-off is twice as long
  world.clock->advance(std::chrono::milliseconds(100));
  CHECK(number->modify(*seen, world.add_one()).code() == StatusCode::kUnavailable);
  world.clock->advance(std::chrono::seconds(10));
  CHECK(number->modify(*seen, world.add_one()).code() == StatusCode::kFenced);
  CHECK(number->state() == ResourceState::kReady);
  CHECK(number->modify(*number->look(), world.add_one()).ok());
}

TEST_CASE("V-17: a write that was held up in the network is refused after a recovery") {
  World world;
  const auto number = world.client("A");
  std::function<Status()> late;
  const Status lost = number->modify(*number->look(), [&](const ResourceView<int>& view) {
    late = [&world, view] { return world.service->write(view.info + 1, view.token); };
    return Result<int>(Status(StatusCode::kDeadlineExceeded, "no answer"));
  });
  CHECK(lost.code() == StatusCode::kDeadlineExceeded);
  CHECK(number->modify(*number->look(), world.add_one()).ok());
  CHECK(number->modify(*number->look(), world.add_one()).ok());
  CHECK(late().code() == StatusCode::kFenced);
  CHECK(world.service->value() == 3);
}

TEST_CASE("V-18: the failure of a change says whether the resource is ready again") {
  World world;
  const auto number = world.client("A");
  const Status failed = number->modify(*number->look(), World::fails);
  CHECK(failed.code() == StatusCode::kIoError);
  CHECK_THAT(
      failed.to_string(),
      ContainsSubstring("the change of number X failed, and this process has acquired it again") &&
          ContainsSubstring("the connection was cut"));
  CHECK(number->state() == ResourceState::kReady);
}

TEST_CASE("V-19: an unfenced resource without a lock delay is refused, unless the host insists") {
  World world;
  const Fencing unfenced{.by = Fencing::By::kDelay, .lock_delay = {}};
  const Status refused = world.client("A", unfenced)->open();
  CHECK(refused.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(refused.to_string(), ContainsSubstring("allow_late_writes"));
  CHECK(world.service->acquires() == 0);
  CHECK(world.log.empty());

  const auto delayed =
      world.client("A", {.by = Fencing::By::kDelay, .lock_delay = std::chrono::minutes(1)});
  CHECK(world.log.size() == 1);  // before any call that could hold a lock
  CHECK(delayed->open().ok());
  CHECK(delayed->modify(*delayed->look(), World::fails).code() == StatusCode::kIoError);
  CHECK(world.log.size() == 1);
  ResourceOptions insists;
  insists.allow_late_writes = true;
  insists.log = [](LogLevel, std::string_view) {};
  CHECK(Number(std::make_unique<NumberAdapter>(world.service, "A", unfenced), insists).open().ok());
}

TEST_CASE("a lock service that has forgotten its grants is not trusted") {
  World world;
  const auto number = world.client("A");
  (void)number->modify(*number->look(), World::fails);
  world.service->forget_grants();
  const Status failed = number->modify(*number->look(), World::fails);
  CHECK_THAT(failed.to_string(), ContainsSubstring("has forgotten grants"));
  CHECK(number->state() == ResourceState::kBroken);
}

TEST_CASE("an adapter that throws leaves the resource broken, and its old view unused") {
  struct Throws final : ResourceAdapter<int> {
    explicit Throws(std::shared_ptr<LockService> service) : inner(std::move(service), "A") {}
    [[nodiscard]] std::string name() const override { return inner.name(); }
    [[nodiscard]] Fencing fencing() const override { return inner.fencing(); }
    Result<FencingToken> acquire() override {
      if (std::exchange(throws, false)) throw std::runtime_error("no memory");
      return inner.acquire();
    }
    Result<int> read(FencingToken token) override { return inner.read(token); }
    NumberAdapter inner;
    bool throws = false;
  };
  World world;
  auto owned = std::make_unique<Throws>(world.service);
  Throws& adapter = *owned;
  Number number(std::move(owned));
  const auto seen = number.look();
  adapter.throws = true;
  CHECK_THROWS_AS(number.modify(*seen, World::fails), std::runtime_error);
  CHECK(number.state() == ResourceState::kBroken);
  CHECK(number.modify(*seen, world.add_one()).code() == StatusCode::kFenced);
  CHECK(world.service->writes() == 0);
  CHECK(number.modify(*number.look(), world.add_one()).ok());
}

TEST_CASE("modify() acquires the resource again when a change throws, and throws the same") {
  World world;
  const auto number = world.client("A");
  const auto seen = number->look();
  CHECK_THROWS_AS(
      number->modify(*seen, [](const auto&) -> Result<int> { throw std::logic_error("x"); }),
      std::logic_error);
  CHECK(world.service->acquires() == 2);
  CHECK(number->modify(*number->look(), world.add_one()).ok());
}

TEST_CASE("a change that was written, and for whose view there is no memory, is not overwritten") {
  World world;
  bool is_full = false;
  ExclusiveResource<Heavy> number(std::make_unique<HeavyAdapter>(world.service, &is_full));
  const auto add_one = [&](bool fills) {
    return [&, fills](const ResourceView<Heavy>& view) -> Result<Heavy> {
      const Status status = world.service->write(view.info.value + 1, view.token);
      Result<Heavy> written = Heavy(view.info.value + 1, &is_full);
      is_full = fills;
      return written;
    };
  };
  CHECK(number.modify(*number.look(), add_one(false)).ok());
  const auto seen = number.look();
  CHECK_THROWS_AS(number.modify(*seen, add_one(true)), std::bad_alloc);

  CHECK(world.service->value() == 3);
  CHECK((*number.look())->info.value == 3);
  CHECK(number.modify(*seen, add_one(false)).code() == StatusCode::kFenced);
  CHECK(number.modify(*number.look(), add_one(false)).ok());
  CHECK(world.service->value() == 4);
}

TEST_CASE("what was refused without a change is repeated until it works, other failures are not") {
  RetryOptions options;
  options.backoff = -std::chrono::seconds(1);  // taken as 1 ms
  int calls = 0;
  CHECK(with_retry(options, [&] {
          return ++calls < 3 ? Status(StatusCode::kFenced, "not yet") : Status();
        }).ok());
  CHECK(calls == 3);
  calls = 0;
  const auto fails = [&] { return ++calls, Status(StatusCode::kUnknownOutcome, "who knows"); };
  CHECK(with_retry(options, fails).code() == StatusCode::kUnknownOutcome);
  CHECK(calls == 1);
  options.timeout = Duration::zero();
  const auto refused = [&] { return ++calls, Status(StatusCode::kUnavailable, "not yet"); };
  CHECK(with_retry(options, refused).code() == StatusCode::kUnavailable);
  CHECK(calls == 2);
}

}  // namespace pv2::testing::exclusive_resource_test
