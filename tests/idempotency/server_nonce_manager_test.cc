// SPDX-License-Identifier: Apache-2.0
//
// The nonce manager, one promise per test. Names such as N-14 are those of the mechanisms that the
// promise is about; tests/idempotency/README.md lists them all.

#include "pv2/idempotency/server_nonce_manager.h"

#include <pv2/base/clock.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pv2/idempotency/fingerprint.h"
#include "support/catch.h"

namespace pv2::testing::server_nonce_manager_test {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const Hash128 kAppend = fingerprint_of({"append", "row 7", "x"});
const Hash128 kOther = fingerprint_of({"append", "row 7", "y"});

NonceRequest request(std::uint64_t group, std::uint64_t value, Hash128 fingerprint = kAppend) {
  return {.nonce = {group, value}, .fingerprint = fingerprint};
}

struct Server {
  Server() : Server([](NonceManagerOptions&) {}) {}
  explicit Server(const std::function<void(NonceManagerOptions&)>& change)
      : manager(changed(change)) {}

  /// The answer that there is now: a test with one thread waits for nobody.
  Result<NonceAnswer> ask(const NonceRequest& asked) {
    return manager.begin(asked, {.timeout = Duration::zero()});
  }
  NonceOwner owner_of(const NonceRequest& asked) {
    auto answer = ask(asked);
    REQUIRE(answer.ok());
    REQUIRE(answer->runs());
    return std::move(answer->owner);
  }
  void run(const NonceRequest& asked, std::string result = "done") {
    owner_of(asked).succeed(std::move(result));
  }
  void sweep() { manager.forget(manager.expired(SIZE_MAX)); }

  NonceManagerOptions changed(const std::function<void(NonceManagerOptions&)>& change) {
    NonceManagerOptions options;
    options.clock = clock;
    change(options);
    return options;
  }
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  ServerNonceManager manager;
};

/// The answers to requests that wait.
struct Answers {
  ServerNonceManager::Answer next() {
    const std::size_t place = list.size();
    list.emplace_back();
    return [this, place](Result<NonceAnswer> answer) { list[place].emplace(std::move(answer)); };
  }
  std::vector<std::optional<Result<NonceAnswer>>> list;
};

}  // namespace

TEST_CASE("N-02, N-15: an operation runs once, and each duplicate gets the same bytes") {
  Server server;
  server.run(request(1, 1), std::string("a\0b", 3));
  const SavedResult first = server.ask(request(1, 1))->result;
  for (int i = 0; i < 4; ++i) {
    auto again = server.ask(request(1, 1));
    REQUIRE(again.ok());
    REQUIRE_FALSE(again->runs());
    CHECK(again->result == first);
  }
  CHECK(*first == std::string("a\0b", 3));
}

TEST_CASE("N-05, N-08: group and value both tell nonces apart") {
  const std::uint64_t numbers[] = {0, 1, 2, INT64_MAX, static_cast<std::uint64_t>(INT64_MIN)};
  Server server;
  std::vector<NonceOwner> owners;
  for (const std::uint64_t group : numbers) {
    for (const std::uint64_t value : numbers)
      owners.push_back(server.owner_of(request(group, value)));
  }
  CHECK(server.manager.counts().running == 20);  // value 0 is no nonce
  for (NonceOwner& owner : owners) owner.succeed("done");
  for (const std::uint64_t group : numbers) {
    for (const std::uint64_t value : numbers) {
      CHECK(server.ask(request(group, value))->runs() == (value == 0));
    }
  }
}

TEST_CASE("N-07: with nonces switched off an operation with a nonce is refused, not run") {
  Server server([](NonceManagerOptions& options) { options.enabled = false; });
  const auto answer = server.ask(request(1, 1));
  CHECK(answer.status().code() == StatusCode::kNotSupported);
  CHECK_THAT(answer.status().to_string(), ContainsSubstring("nonce 1/1"));
  CHECK(server.ask(request(1, 0))->runs());
}

TEST_CASE("N-09, N-21: requests without a nonce all run, and nothing is remembered") {
  Server server;
  for (int i = 0; i < 2; ++i) server.run(request(1, 0));
  CHECK(server.manager.counts().succeeded == 0);
  CHECK(server.manager.counts().bytes == 0);
}

TEST_CASE("N-12, N-14: a duplicate waits for the owner and gets its result") {
  Server server;
  NonceOwner owner = server.owner_of(request(1, 1));
  std::optional<Result<NonceAnswer>> answer;
  std::thread duplicate([&] { answer = server.manager.begin(request(1, 1)); });
  while (server.manager.counts().waiting == 0) std::this_thread::yield();
  owner.succeed("seven");
  duplicate.join();
  REQUIRE(answer->ok());
  REQUIRE_FALSE((*answer)->runs());
  CHECK(*(*answer)->result == "seven");
}

TEST_CASE("N-12: a duplicate stops waiting at its own deadline, and the owner does not notice") {
  Server server;
  NonceOwner owner = server.owner_of(request(1, 1));
  std::optional<Result<NonceAnswer>> answer;
  std::thread duplicate(
      [&] { answer = server.manager.begin(request(1, 1), {.timeout = seconds(5)}); });
  while (server.manager.counts().waiting == 0) std::this_thread::yield();
  // The duplicate may not have subscribed to the clock yet, so the clock is moved until it has
  // gone.
  while (server.manager.counts().waiting != 0) server.clock->advance(seconds(5));
  duplicate.join();
  CHECK(answer->status().code() == StatusCode::kDeadlineExceeded);
  owner.succeed("seven");
  CHECK(*server.ask(request(1, 1))->result == "seven");
}

TEST_CASE("a duplicate that may not wait at all gets its answer at once") {
  Server server;
  NonceOwner owner = server.owner_of(request(1, 1));
  const auto answer = server.manager.begin(request(1, 1), {.timeout = seconds(-1)});
  CHECK(answer.status().code() == StatusCode::kDeadlineExceeded);
  owner.succeed("done");
}

TEST_CASE("N-19: a duplicate whose wait is cancelled does not disturb the owner") {
  Server server;
  NonceOwner owner = server.owner_of(request(1, 1));
  std::stop_source stop;
  std::optional<Result<NonceAnswer>> answer;
  std::thread duplicate(
      [&] { answer = server.manager.begin(request(1, 1), {.stop = stop.get_token()}); });
  if (GENERATE(true, false)) {  // else it may be cancelled before it waits
    while (server.manager.counts().waiting == 0) std::this_thread::yield();
  }
  stop.request_stop();
  duplicate.join();
  CHECK(answer->status().code() == StatusCode::kAborted);
  CHECK(server.manager.counts().waiting == 0);
  owner.succeed("seven");
  CHECK(*server.ask(request(1, 1))->result == "seven");
}

TEST_CASE("N-14, N-23: after a definite failure the duplicate that waited longest takes over") {
  Server server;
  NonceOwner owner = server.owner_of(request(1, 1));
  Answers answers;
  for (int i = 0; i < 3; ++i) server.manager.begin_async(request(1, 1), answers.next());
  owner.fail();
  REQUIRE(answers.list[0]);
  REQUIRE((*answers.list[0])->runs());
  CHECK_FALSE(answers.list[1]);
  CHECK(server.manager.counts().running == 1);

  (*answers.list[0])->owner.fail();
  REQUIRE(answers.list[1]);
  (*answers.list[1])->owner.succeed("third time");

  REQUIRE(answers.list[2]);
  CHECK(*(*answers.list[2])->result == "third time");
}

TEST_CASE("N-23: all that fail may run again, and of those that succeed none") {
  Server server;
  for (std::uint64_t i = 1; i <= 100; ++i) {
    NonceOwner owner = server.owner_of(request(1, i));
    i % 2 == 0 ? owner.fail() : owner.succeed("done");
  }
  CHECK(server.manager.counts().succeeded == 50);
  CHECK(server.manager.counts().running == 0);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    auto again = server.ask(request(1, i));
    CHECK(again->runs() == (i % 2 == 0));
    again->owner.fail();
  }
}

TEST_CASE("N-20: an owner that dies without a word leaves the outcome unknown, not failed") {
  Server server;
  Answers answers;
  try {
    NonceOwner owner = server.owner_of(request(1, 1));
    server.manager.begin_async(request(1, 1), answers.next());
    throw 1;  // after the effect was written, or before: nobody knows
  } catch (int) {
  }
  CHECK(answers.list[0]->status().code() == StatusCode::kUnknownOutcome);
  CHECK(server.ask(request(1, 1)).status().code() == StatusCode::kUnknownOutcome);
  CHECK(server.manager.lookup({1, 1}).status().code() == StatusCode::kUnknownOutcome);
  CHECK(server.manager.counts().unknown == 1);
  CHECK(server.manager.unknown() == std::vector<Nonce>{{1, 1}});
  server.clock->advance(hours(48));
  server.sweep();
  CHECK(server.ask(request(1, 1)).status().code() == StatusCode::kUnknownOutcome);

  SECTION("recovery finds that it was done") {
    CHECK(server.manager.resolve_done({1, 1}, "seven"));
    CHECK(*server.ask(request(1, 1))->result == "seven");
  }
  SECTION("recovery finds that it was not done") {
    CHECK(server.manager.resolve_not_done({1, 1}));
    server.run(request(1, 1), "eight");
    CHECK(*server.ask(request(1, 1))->result == "eight");
  }
  CHECK_FALSE(server.manager.resolve_done({1, 1}, "nine"));
  CHECK_FALSE(server.manager.resolve_not_done({1, 1}));
  CHECK_FALSE(server.manager.resolve_not_done({1, 2}));
}

TEST_CASE("an owner that gets another operation by a move ends the one that it had") {
  Server server;
  NonceOwner owner = server.owner_of(request(1, 1));
  owner = server.owner_of(request(1, 2));
  CHECK(server.manager.counts().unknown == 1);
  NonceOwner moved = std::move(owner);
  owner.fail();  // it owns nothing
  CHECK(server.manager.counts().running == 1);
  moved.succeed("done");
  moved.fail();
  CHECK(*server.ask(request(1, 2))->result == "done");
}

TEST_CASE("a nonce that is used for something else is refused, whatever became of the first use") {
  Server server;
  NonceOwner owner = server.owner_of(request(1, 1));
  const auto running = server.ask(request(1, 1, kOther));
  CHECK(running.status().code() == StatusCode::kKeyReused);
  CHECK_THAT(running.status().to_string(), ContainsSubstring("nonce 1/1"));
  owner.succeed("a secret");
  const auto done = server.ask(request(1, 1, kOther));
  CHECK(done.status() == running.status());  // nothing is told of the first use
  CHECK(*server.ask(request(1, 1))->result == "a secret");
}

TEST_CASE("N-17: a nonce that failed definitely may be used for something else") {
  Server server;
  server.owner_of(request(1, 1)).fail();
  server.run(request(1, 1, kOther));
  CHECK(server.ask(request(1, 1)).status().code() == StatusCode::kKeyReused);
}

TEST_CASE("N-18: a stop answers all duplicates that wait, and owners go on") {
  Server server;
  NonceOwner owner = server.owner_of(request(1, 1));
  std::vector<std::thread> duplicates;
  std::vector<std::optional<Result<NonceAnswer>>> answers(100);
  for (auto& answer : answers) {
    duplicates.emplace_back([&] { answer = server.manager.begin(request(1, 1)); });
  }
  while (server.manager.counts().waiting != 100) std::this_thread::yield();
  server.manager.stop();
  for (std::thread& duplicate : duplicates) duplicate.join();
  for (const auto& answer : answers) CHECK(answer->status().code() == StatusCode::kStopping);
  CHECK(server.ask(request(1, 1)).status().code() == StatusCode::kStopping);
  CHECK(server.ask(request(1, 2)).status().code() == StatusCode::kStopping);
  CHECK(server.ask(request(1, 0)).status().code() == StatusCode::kStopping);
  owner.succeed("done");
  CHECK(**server.manager.lookup({1, 1}) == "done");
}

TEST_CASE("a stop answers duplicates in the order in which they came, whatever their nonces") {
  Server server;
  std::vector<NonceOwner> owners;
  std::vector<std::uint64_t> asked, answered;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::uint64_t value = 1 + i * 37 % 200;
    owners.push_back(server.owner_of(request(1, value)));
    asked.push_back(value);
    CHECK(server.manager.begin_async(request(1, value), [&answered, value](const auto&) {
      answered.push_back(value);
    }) != 0);
  }
  server.manager.stop();

  CHECK(answered == asked);
  for (NonceOwner& owner : owners) owner.fail();
}

TEST_CASE("nonces whose outcome is unknown are listed in their order") {
  Server server;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const NonceOwner dies = server.owner_of(request(i % 3, 1 + i * 37 % 200));
  }
  const std::vector<Nonce> unknown = server.manager.unknown();

  CHECK(unknown.size() == 200);
  CHECK(std::ranges::is_sorted(unknown));
}

TEST_CASE(
    "N-22, N-24: a nonce is remembered for the retention after its end, never forgotten before") {
  Server server([](NonceManagerOptions& options) { options.retention = seconds(6); });
  const SteadyTime start = server.clock->steady_now();
  const auto at = [&](int second) {
    server.clock->advance(start + seconds(second) - server.clock->steady_now());
  };
  at(1);
  NonceOwner first = server.owner_of(request(1, 1));
  NonceOwner second = server.owner_of(request(1, 2));
  NonceOwner third = server.owner_of(request(1, 3));
  at(2);
  first.succeed("1");
  at(4);
  second.succeed("2");

  at(9);
  server.sweep();
  CHECK(server.manager.lookup({1, 1}).status().code() == StatusCode::kNotFound);
  CHECK(server.manager.lookup({1, 2}).ok());
  at(11);
  server.sweep();
  CHECK(server.manager.lookup({1, 2}).status().code() == StatusCode::kNotFound);
  at(1000);
  server.sweep();
  CHECK(server.manager.begin(request(1, 3), {.timeout = {}}).status().code() ==
        StatusCode::kDeadlineExceeded);  // it still runs
  third.succeed("3");
  CHECK(server.manager.counts().succeeded == 1);
}

TEST_CASE("N-24: a jump of the wall clock forgets nothing") {
  Server server;
  server.run(request(1, 1));
  server.clock->jump_wall(hours(1));
  server.sweep();
  CHECK_FALSE(server.ask(request(1, 1))->runs());
  server.clock->jump_wall(hours(-2));
  server.clock->advance(minutes(30));
  server.sweep();
  CHECK(server.manager.counts().succeeded == 0);
}

TEST_CASE("a nonce whose time is over is remembered until its row was deleted") {
  Server server;
  server.run(request(1, 1));
  server.clock->advance(minutes(30));
  const std::vector<Nonce> expired = server.manager.expired(SIZE_MAX);
  REQUIRE(expired == std::vector<Nonce>{{1, 1}});
  CHECK_FALSE(server.ask(request(1, 1))->runs());
  CHECK(server.manager.expired(SIZE_MAX) == expired);
  server.manager.forget(expired);
  CHECK(server.manager.expired(SIZE_MAX).empty());
  server.run(request(1, 1));
  server.manager.forget(expired);  // not the nonce that is in use again
  CHECK_FALSE(server.ask(request(1, 1))->runs());
}

TEST_CASE("N-24: memory is bounded by a refusal, and what is remembered stays so") {
  Server server([](NonceManagerOptions& options) { options.bytes_max = 10'000; });
  std::uint64_t used = 0;
  Status refused;
  for (std::uint64_t i = 1; refused.ok() && i <= 100; ++i) {
    auto answer = server.ask(request(1, i));
    refused = answer.status();
    if (!refused.ok()) break;
    answer->owner.succeed(std::string(1000, 'r'));
    used = i;
  }
  CHECK(refused.code() == StatusCode::kResourceExhausted);
  CHECK_THAT(refused.to_string(), ContainsSubstring("bytes_max"));
  REQUIRE(used > 1);
  for (std::uint64_t i = 1; i <= used; ++i) CHECK_FALSE(server.ask(request(1, i))->runs());
  CHECK(server.ask(request(1, 0))->runs());

  server.clock->advance(minutes(30));
  CHECK(server.manager.expired(3).size() == 3);
  server.sweep();
  CHECK(server.manager.counts().bytes == 0);
  server.run(request(1, used + 1));
}

TEST_CASE("the duplicates that wait for one operation are bounded") {
  Server server([](NonceManagerOptions& options) { options.waiters_max = 2; });
  NonceOwner owner = server.owner_of(request(1, 1));
  Answers answers;
  for (int i = 0; i < 3; ++i) server.manager.begin_async(request(1, 1), answers.next());
  CHECK_FALSE(answers.list[1]);
  REQUIRE(answers.list[2]);
  CHECK(answers.list[2]->status().code() == StatusCode::kResourceExhausted);
  owner.succeed("done");
  CHECK((*answers.list[1]).ok());
}

TEST_CASE("a nonce is remembered as long as its client may send it, by a clock that is behind") {
  Server server;
  NonceRequest asked = request(1, 1);
  asked.expires_at = server.clock->wall_now() + hours(2);
  server.run(asked);
  server.clock->advance(hours(2) + seconds(59));
  server.sweep();
  CHECK_FALSE(server.ask(asked)->runs());
  server.clock->advance(seconds(1));
  server.sweep();
  // It is forgotten, and its client may not send it any more: a late copy is refused.
  const auto late = server.ask(asked);
  CHECK(late.status().code() == StatusCode::kExpired);
  CHECK_THAT(late.status().to_string(), ContainsSubstring("may have been done"));
}

TEST_CASE("a copy that promises more than the first request is refused, before and after its end") {
  Server server;
  NonceRequest first = request(1, 1), longer = request(1, 1), without = request(1, 2);
  first.expires_at = server.clock->wall_now() + minutes(10);
  longer.expires_at = server.clock->wall_now() + hours(20);
  NonceOwner owner = server.owner_of(first);
  CHECK(server.ask(longer).status().code() == StatusCode::kInvalidArgument);
  owner.succeed("done");
  CHECK(server.ask(longer).status().code() == StatusCode::kInvalidArgument);
  CHECK(*server.ask(first)->result == "done");
  CHECK(*server.ask(request(1, 1))->result == "done");
  server.run(without);
  without.expires_at = first.expires_at;
  CHECK(server.ask(without).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("an answer that throws keeps no other duplicate from its answer") {
  Server server;
  NonceOwner owner = server.owner_of(request(1, 1));
  Answers answers;
  server.manager.begin_async(request(1, 1), [](const Result<NonceAnswer>&) { throw 1; });
  server.manager.begin_async(request(1, 1), answers.next());
  SECTION("success") { owner.succeed("done"); }
  SECTION("failure: the one that throws takes over, and says nothing") { owner.fail(); }
  SECTION("no word") { owner = NonceOwner(); }
  CHECK(answers.list[0]);
}

TEST_CASE("a nonce that expires later than nonces are remembered is refused") {
  Server server;
  NonceRequest asked = request(1, 1);
  asked.expires_at = server.clock->wall_now() + hours(24) + seconds(1);
  CHECK(server.ask(asked).status().code() == StatusCode::kInvalidArgument);
  CHECK(server.manager.counts().bytes == 0);
}

TEST_CASE("a ticket is cancelled once, and not after the answer") {
  Server server;
  NonceOwner owner = server.owner_of(request(1, 1));
  Answers answers;
  const std::uint64_t first = server.manager.begin_async(request(1, 1), answers.next());
  const std::uint64_t second = server.manager.begin_async(request(1, 1), answers.next());
  REQUIRE(first != 0);
  CHECK(server.manager.cancel({1, 1}, first));
  CHECK_FALSE(server.manager.cancel({1, 1}, first));
  CHECK_FALSE(server.manager.cancel({1, 2}, second));
  owner.succeed("done");
  CHECK_FALSE(server.manager.cancel({1, 1}, second));
  CHECK_FALSE(answers.list[0]);
  CHECK(answers.list[1]);
  CHECK(server.manager.begin_async(request(1, 1), answers.next()) == 0);
}

TEST_CASE("the parts of a fingerprint are told apart by their lengths") {
  CHECK(fingerprint_of({"ab", "c"}) != fingerprint_of({"a", "bc"}));
  CHECK(fingerprint_of({"ab", ""}) != fingerprint_of({"ab"}));
  CHECK(fingerprint_of({"ab", "c"}) == fingerprint_of({"ab", "c"}));
}

}  // namespace pv2::testing::server_nonce_manager_test
