// SPDX-License-Identifier: Apache-2.0
//
// A verdict that finds no memory throws, and leaves nothing that runs without an owner: neither a
// request or nonce, nor the copies that wait for it, nor a mark on its way. Each request for memory
// that a verb makes fails in turn. This program has an operator new of its own for that; with a
// sanitizer it has the sanitizer's, and these tests are left out.

#include <pv2/base/clock.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pv2/idempotency/client_sessions.h"
#include "pv2/idempotency/server_nonce_manager.h"
#include "support/catch.h"
#include "support/one_failure.h"
#include "support/own_malloc.h"

#if !PV2_HAS_OWN_MALLOC

namespace pv2::testing::verdict_no_memory_test {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

const std::string kLong(300, 'x');

enum class Ended : std::uint8_t { kWell, kThrew };

// Lets the n-th request for memory that `verb` makes fail, for each n; `check` is told how it
// ended. Returns how many requests failed.
template <class World>
int fail_each(const std::function<void(World&)>& prepare, const std::function<void(World&)>& verb,
              const std::function<void(World&, Ended)>& check) {
  for (int request = 0;; ++request) {
    CAPTURE(request);
    World world;
    prepare(world);
    Ended ended = Ended::kWell;
    bool has_failed = false;
    {
      const OneFailure failure(request);
      try {
        verb(world);
      } catch (const std::bad_alloc&) {
        ended = Ended::kThrew;
      }
      has_failed = OneFailure::has_happened() || ended == Ended::kThrew;
    }
    check(world, ended);
    if (!has_failed) return request;
    REQUIRE(request < 1000);
  }
}

/// A nonce with an owner and a duplicate that waits.
struct NonceWorld {
  NonceWorld() {
    owner = std::move(manager.begin(asked)->owner);
    manager.begin_async(asked, [this](const Result<NonceAnswer>&) { ++told; });
  }
  const NonceRequest asked{.nonce = {1, 7}, .fingerprint = {1, 1}};
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  int told = 0;
  ServerNonceManager manager{{.clock = clock, .bytes_max = 2 * 1024}};
  NonceOwner owner;
};

/// Everything is in the store at once, and is never read.
struct DurableAtOnce final : RowLog {
  void commit(RowBatch /*batch*/, std::function<void(Status)> done) override { done(Status()); }
  Status scan(std::string_view /*prefix*/, const RowVisitor& /*visit*/) override {
    return Status();
  }
};

/// A session whose client has the response to request 1. Request 2 runs; of the two copies that
/// wait for it the first one's time is over.
struct SessionWorld {
  SessionWorld() {
    sessions = *ClientSessions::load(log, {.clock = clock});
    sessions->open("t", "anna", 0, [this](const Result<Session>& opened) { session = *opened; });
    RowBatch batch;
    RequestOwner first = std::move(sessions->begin(request(1)).owner);
    first.save(batch, kLong);
    first.done();
    owner = std::move(sessions->begin(request(2)).owner);
    SessionRequest copy = request(2);
    copy.deadline = clock->wall_now() + seconds(1);
    for (int i = 0; i < 2; ++i) {
      sessions->begin_async(copy, [this](SessionAnswer answer) {
        ++told;
        if (answer.runs()) answer.owner.refuse();
      });
      copy.deadline.reset();
    }
    clock->advance(seconds(2));
  }
  [[nodiscard]] SessionRequest request(std::uint64_t number) const {
    return {.session = session.id,
            .number = number,
            .first_unacked = number,
            .fingerprint = {number, 1},
            .owner = "anna"};
  }
  Status close() {
    Status status(StatusCode::kInternal, "no answer");
    sessions->close(session.id, "anna", [&](const Status& answer) { status = answer; });
    return status;
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  DurableAtOnce log;
  Session session;
  int told = 0;
  std::unique_ptr<ClientSessions> sessions;
  RequestOwner owner;
};

}  // namespace

TEST_CASE(
    "a nonce whose owner finds no memory for its verdict is unknown, and duplicates hear it") {
  const bool is_saved = GENERATE(false, true);
  const int failures = fail_each<NonceWorld>(
      [](NonceWorld&) {},
      [&](NonceWorld& world) {
        RowBatch batch;
        if (is_saved) world.owner.save(batch, kLong);
        is_saved ? world.owner.succeed() : world.owner.succeed(kLong);
      },
      [](NonceWorld& world, Ended ended) {
        world.owner = NonceOwner();
        CHECK(world.told == 1);
        CHECK(world.manager.counts().waiting == 0);
        CHECK(world.manager.counts().running == 0);
        CHECK(world.manager.counts().unknown == (ended == Ended::kThrew ? 1 : 0));
        if (ended == Ended::kThrew) CHECK(world.manager.resolve_done(world.asked.nonce, kLong));
        world.clock->advance(hours(48));
        CHECK(world.manager.expired(2).size() == 1);
      });
  CHECK(failures >= 3);
}

TEST_CASE("a nonce that recovery finds no memory to resolve stays unknown") {
  const int failures = fail_each<NonceWorld>(
      [](NonceWorld& world) { world.owner = NonceOwner(); },
      [](NonceWorld& world) { (void)world.manager.resolve_done(world.asked.nonce, kLong); },
      [](NonceWorld& world, Ended ended) {
        CHECK(world.manager.counts().unknown == (ended == Ended::kThrew ? 1 : 0));
        CHECK(world.manager.resolve_not_done(world.asked.nonce) == (ended == Ended::kThrew));
      });
  CHECK(failures >= 3);
}

TEST_CASE("a nonce that finds no memory to begin, or to be read from the log, is not known") {
  const bool is_replayed = GENERATE(false, true);
  const NonceRequest other{.nonce = {1, 8}, .fingerprint = {1, 1}, .expires_at = WallTime::min()};
  const int failures = fail_each<NonceWorld>(
      [](NonceWorld&) {},
      [&](NonceWorld& world) {
        if (is_replayed) {
          world.manager.replay({.nonce = other.nonce, .fingerprint = {}}, world.clock->wall_now(),
                               kLong);
        } else {
          (void)world.manager.begin(other);
        }
      },
      [&](NonceWorld& world, Ended ended) {
        const bool is_known = is_replayed && ended == Ended::kWell;
        CHECK(world.manager.counts().running == 1);
        CHECK(world.manager.lookup(other.nonce).ok() == is_known);
        CHECK(world.manager.counts().bytes == (is_known ? 512 + kLong.size() : 256));
        world.owner.fail();
      });
  CHECK(failures >= 2);
}

TEST_CASE(
    "a request that finds no memory for its verdict holds up neither copies nor its session") {
  const bool is_saved = GENERATE(false, true);
  const bool is_done = GENERATE(false, true);
  const bool is_given_up = GENERATE(false, true);
  if (is_done && !is_saved) return;
  const int failures = fail_each<SessionWorld>(
      [&](SessionWorld& world) {
        if (is_given_up) (void)world.sessions->heartbeat(world.session.id, "anna", 3);
      },
      [&](SessionWorld& world) {
        RowBatch batch;
        if (is_saved) world.owner.save(batch, kLong);
        is_done ? world.owner.done() : world.owner.refuse();
      },
      [](SessionWorld& world, Ended ended) {
        if (ended == Ended::kThrew) world.owner.refuse();  // as a host does that has given up
        world.owner = RequestOwner();
        CHECK(world.told == 2);
        (void)world.sessions->resolve_not_done(world.session.id, 2);
        CHECK(world.close().to_string() == "OK");
      });
  CHECK(failures >= 1);
}

TEST_CASE("a request that recovery finds no memory to resolve stays unknown") {
  const bool is_done = GENERATE(false, true);
  const int failures = fail_each<SessionWorld>(
      [&](SessionWorld& world) {
        RowBatch batch;
        world.owner.save(batch, kLong);
        world.owner = RequestOwner();
        (void)world.sessions->heartbeat(world.session.id, "anna", 3);
      },
      [&](SessionWorld& world) {
        is_done ? world.sessions->resolve_done(world.session.id, 2, kLong)
                : world.sessions->resolve_not_done(world.session.id, 2);
      },
      [](SessionWorld& world, Ended) {
        CHECK(world.told == 2);
        (void)world.sessions->resolve_not_done(world.session.id, 2);
        CHECK(world.close().to_string() == "OK");
      });
  if (is_done) CHECK(failures >= 1);
}

}  // namespace pv2::testing::verdict_no_memory_test

void* operator new(std::size_t bytes) {
  if (pv2::testing::OneFailure::is_now()) throw std::bad_alloc();
  void* const memory = std::malloc(bytes != 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }

#endif
