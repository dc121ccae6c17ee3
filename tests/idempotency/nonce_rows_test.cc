// SPDX-License-Identifier: Apache-2.0
//
// Nonces that outlive their process: rows beside the effect, replay, clean-up.

#include "pv2/idempotency/nonce_rows.h"

#include <pv2/store/memory_procedure_store.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pv2/idempotency/fingerprint.h"
#include "support/catch.h"

namespace pv2::testing::nonce_rows_test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const Hash128 kIncrement = fingerprint_of({"increment", "counter"});

NonceRequest request(std::uint64_t value) {
  return {.nonce = {7, value}, .fingerprint = kIncrement};
}

/// A counter in a store, incremented through a manager whose rows are in the same store.
class Server final : public CommitSink {
 public:
  Server(std::shared_ptr<MemoryDisk> disk, std::shared_ptr<ManualClock> clock)
      : store_(std::move(disk)), manager({.clock = std::move(clock)}) {
    REQUIRE(store_.recover_lease(*this).ok());
    loaded = load_nonces(store_, manager);
  }

  int value() {
    const auto row = store_.get(Space::kHost, "counter");
    return *row ? std::stoi(**row) : 0;
  }
  /// Adds 1 and returns the new value, or what the first request with the nonce returned.
  std::string increment(std::uint64_t nonce) {
    auto answer = manager.begin(request(nonce));
    REQUIRE(answer.ok());
    if (!answer->runs()) return *answer->result;
    const std::string now = std::to_string(value() + 1);
    RowBatch effect;
    effect.put(Space::kHost, "counter", now);
    answer->owner.save(effect, now);
    commit(std::move(effect));
    answer->owner.succeed();
    return now;
  }
  void sweep() {
    const std::vector<Nonce> expired = manager.expired(100);
    RowBatch deletions;
    erase_nonce_rows(manager, expired, deletions);
    commit(std::move(deletions));
    manager.forget(expired);
  }
  void commit(RowBatch batch) {
    Request request;
    request.batch = std::move(batch);
    store_.commit(request);
    store_.pump();
    REQUIRE(request.status.ok());
  }

 private:
  struct Request final : CommitRequest {};
  void on_committed(CommitList /*finished*/) noexcept override {}
  MemoryProcedureStore store_;

 public:
  ServerNonceManager manager;
  Status loaded;
};

struct World {
  Server& start() {
    server.reset();
    return server.emplace(disk, clock);
  }
  std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>();
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::optional<Server> server;
};

}  // namespace

TEST_CASE("N-17, N-26: a duplicate after a restart gets the bytes of the first answer") {
  World world;
  CHECK(world.start().increment(1) == "1");
  CHECK(world.server->increment(2) == "2");
  CHECK(world.start().increment(1) == "1");
  CHECK(world.server->increment(3) == "3");
  CHECK(world.server->increment(2) == "2");
  CHECK(world.server->value() == 3);
}

TEST_CASE("N-26: an operation whose batch was lost in a crash is not remembered, and runs again") {
  World world;
  {
    auto answer = world.start().manager.begin(request(1));
    RowBatch lost;
    lost.put(Space::kHost, "counter", "1");
    answer->owner.save(lost, "1");
  }
  CHECK(world.server->manager.counts().unknown == 1);  // as long as this process lives
  CHECK(world.start().increment(1) == "1");
  CHECK(world.server->value() == 1);
}

TEST_CASE(
    "N-20: an owner that dies after its batch was durable is remembered by the next process") {
  World world;
  {
    Server& server = world.start();
    auto answer = server.manager.begin(request(1));
    RowBatch effect;
    effect.put(Space::kHost, "counter", "1");
    answer->owner.save(effect, "1");
    server.commit(std::move(effect));
  }
  CHECK(world.server->manager.begin(request(1)).status().code() == StatusCode::kUnknownOutcome);
  CHECK(world.start().increment(1) == "1");
  CHECK(world.server->value() == 1);
}

TEST_CASE("a forgotten promise is refused although the wall clock was set back") {
  World world;
  Server& server = world.start();
  NonceRequest asked = request(1);
  asked.expires_at = world.clock->wall_now() + minutes(10);
  {
    auto answer = server.manager.begin(asked);
    RowBatch effect;
    answer->owner.save(effect, "1");
    server.commit(std::move(effect));
    answer->owner.succeed();
  }
  world.clock->advance(minutes(31));
  server.sweep();
  CHECK(server.manager.counts().succeeded == 0);
  world.clock->jump_wall(-std::chrono::hours(2));
  if (GENERATE(false, true)) world.start();

  CHECK(world.server->manager.begin(asked).status().code() == StatusCode::kExpired);
  CHECK(world.start().manager.begin(asked).status().code() == StatusCode::kExpired);
}

TEST_CASE("N-24: a wall clock that jumps while no process runs makes no nonce forgotten") {
  World world;
  CHECK(world.start().increment(1) == "1");
  world.clock->jump_wall(std::chrono::hours(24));
  CHECK(world.start().increment(1) == "1");
  CHECK(world.server->manager.expired(100).empty());
  CHECK(world.server->value() == 1);
}

TEST_CASE("N-26: what is replayed is remembered for the retention from now, or is too old") {
  ServerNonceManager manager(
      {.clock = std::make_shared<ManualClock>(WallTime(seconds(12))), .retention = seconds(6)});
  using Replay = ServerNonceManager::Replay;
  CHECK(manager.replay(request(1), WallTime(seconds(8)), "1") == Replay::kRemembered);
  CHECK(manager.replay(request(2), WallTime(seconds(5)), "2") == Replay::kRemembered);
  CHECK(manager.replay(request(3), WallTime(seconds(2)), "3") == Replay::kTooOld);
  CHECK(manager.replay(request(1), WallTime(seconds(8)), "x") == Replay::kKnown);
  CHECK(*manager.begin(request(1))->result == "1");
  CHECK_FALSE(manager.begin(request(2))->runs());
  CHECK(manager.expired(100) == std::vector<Nonce>{{7, 3}});
  manager.forget(manager.expired(100));
  auto old = manager.begin(request(3));
  CHECK(old->runs());
  old->owner.fail();
}

TEST_CASE("times that are very long forget nothing, neither now nor in a replay") {
  NonceManagerOptions options;
  options.clock = std::make_shared<ManualClock>();
  options.retention = Duration::max();
  options.skew_max = Duration::max();
  options.expires_after_max = Duration::max();
  ServerNonceManager manager(options);
  CHECK(manager.replay(request(1), WallTime::min(), "1") ==
        ServerNonceManager::Replay::kRemembered);
  NonceRequest asked = request(2);
  asked.expires_at = WallTime::max();
  manager.begin(asked)->owner.succeed("2");
  CHECK(manager.expired(100).empty());
  CHECK(*manager.begin(request(1))->result == "1");
}

TEST_CASE("N-26: the retention of a replayed nonce begins with the replay") {
  auto clock = std::make_shared<ManualClock>(WallTime(seconds(12)));
  ServerNonceManager manager({.clock = clock, .retention = seconds(6)});
  manager.replay(request(1), WallTime(seconds(8)), "1");
  clock->advance(seconds(5));
  manager.forget(manager.expired(100));
  CHECK_FALSE(manager.begin(request(1))->runs());
  clock->advance(seconds(1));
  manager.forget(manager.expired(100));
  CHECK(manager.lookup({7, 1}).status().code() == StatusCode::kNotFound);
}

TEST_CASE("rows of nonces whose time is over are deleted by a sweep, which a restart puts off") {
  World world;
  world.start().increment(1);
  world.clock->advance(minutes(20));
  world.server->increment(2);
  world.clock->advance(minutes(10));
  world.server->sweep();
  CHECK(world.disk->rows(Space::kHost, kNonceRows) == 1);
  world.clock->advance(minutes(36));
  world.start();
  world.server->sweep();
  CHECK(world.disk->rows(Space::kHost, kNonceRows) == 1);
  world.clock->advance(minutes(30));
  world.server->sweep();
  CHECK(world.disk->rows(Space::kHost, kNonceRows) == 0);
  CHECK(world.server->value() == 2);
}

TEST_CASE("a promise of the client keeps its row beyond the retention, over a restart too") {
  World world;
  Server& server = world.start();
  NonceRequest asked = request(1);
  asked.expires_at = world.clock->wall_now() + std::chrono::hours(3);
  auto answer = server.manager.begin(asked);
  RowBatch effect;
  answer->owner.save(effect, "1");
  server.commit(std::move(effect));
  answer->owner.succeed();

  world.clock->advance(std::chrono::hours(2));
  CHECK(world.start().increment(1) == "1");
  world.clock->advance(minutes(59));
  world.server->sweep();
  CHECK(world.server->increment(1) == "1");
}

TEST_CASE("a nonce row that is damaged stops the start, and names its nonce") {
  World world;
  world.start().increment(1);
  const std::string key = nonce_row_key({7, 1});
  const std::string value = *world.disk->get(Space::kHost, key);
  const auto damage = GENERATE(0, 1, 2, 3);
  std::string damaged = value;
  if (damage == 0) damaged[damaged.size() / 2] ^= 1;
  if (damage == 1) damaged.resize(damaged.size() - 1);
  if (damage == 2) damaged.clear();
  const std::string at = damage == 3 ? key + "x" : key;
  world.disk->put(Space::kHost, at, damaged);
  CHECK(world.start().loaded.code() == StatusCode::kCorruption);
  if (damage != 3) CHECK_THAT(world.server->loaded.to_string(), ContainsSubstring("nonce 7/1"));
}

TEST_CASE("a nonce row has all that its request and its answer need") {
  RowBatch batch;
  NonceRequest asked = request(UINT64_MAX);
  asked.nonce.group = 1;
  asked.expires_at = WallTime(seconds(50));
  put_nonce_row({asked, WallTime(seconds(-3)), std::string("\0r", 2)}, batch);
  batch.for_each([&](RowOperation, Space, std::string_view key, std::string_view value) {
    const auto row = decode_nonce_row(key, value);
    REQUIRE(row.ok());
    CHECK(row->request.nonce == asked.nonce);
    CHECK(row->request.fingerprint == kIncrement);
    CHECK(row->request.expires_at == asked.expires_at);
    CHECK(row->done_at == WallTime(seconds(-3)));
    CHECK(row->result == std::string("\0r", 2));
  });
}

}  // namespace pv2::testing::nonce_rows_test
