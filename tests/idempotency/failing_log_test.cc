// SPDX-License-Identifier: Apache-2.0
//
// Sessions over a log that refuses a batch, or that fails and never writes again. What a session is
// told is definite in the first case; in the second a restart tells.

#include <pv2/store/memory_procedure_store.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "pv2/idempotency/client_sessions.h"
#include "pv2/idempotency/fingerprint.h"
#include "support/catch.h"

namespace pv2::testing::failing_log_test {
namespace {

const Status kRefused(StatusCode::kInvalidArgument, "the batch is too large");
const Status kFailed(StatusCode::kIoError, "the disk is gone");

/// A log that a test makes fail, as RowLog says that a log may.
class FailingLog final : public RowLog {
 public:
  enum class Written { kNo, kYes };

  explicit FailingLog(const std::shared_ptr<MemoryDisk>& disk)
      : rows_(*StoreRows::open(std::make_unique<MemoryProcedureStore>(disk))) {}

  void commit(RowBatch batch, std::function<void(Status)> done) override {
    if (std::exchange(refuses_, false)) return done(kRefused);
    if (!failed_) return rows_->commit(std::move(batch), std::move(done));
    const bool is_last = std::exchange(last_is_written_, false);
    if (is_last) CHECK(rows_->commit(std::move(batch)).ok());
    done(kFailed);
  }
  Status scan(std::string_view prefix, const RowVisitor& visit) override {
    return rows_->scan(prefix, visit);
  }

  void refuse_next() { refuses_ = true; }
  void fail(Written next) {
    failed_ = true;
    last_is_written_ = next == Written::kYes;
  }
  void pump() {
    while (rows_->store().pump()) {
    }
  }

 private:
  std::unique_ptr<StoreRows> rows_;
  bool refuses_ = false;
  bool failed_ = false;
  bool last_is_written_ = false;
};

struct World {
  World() { start(); }
  void start() {
    sessions.reset();
    log.reset();
    log = std::make_unique<FailingLog>(disk);
    SessionOptions options;
    options.clock = clock;
    sessions = *ClientSessions::load(*log, options);
  }
  Result<Session> open() {
    std::optional<Result<Session>> answer;
    sessions->open("t", "anna", 0, [&](Result<Session> opened) { answer = std::move(opened); });
    log->pump();
    REQUIRE(answer);
    return *std::move(answer);
  }
  Status close(Session session) {
    std::optional<Status> answer;
    sessions->close(session.id, "anna", [&](const Status& closed) { answer = closed; });
    log->pump();
    REQUIRE(answer);
    return *answer;
  }
  Status maintain() {
    std::optional<Status> answer;
    sessions->maintain([&](const Status& done) { answer = done; });
    log->pump();
    REQUIRE(answer);
    return *answer;
  }
  SessionAnswer ask(Session session, std::uint64_t number, std::uint64_t first_unacked = 1) {
    return sessions->begin({.session = session.id,
                            .number = number,
                            .first_unacked = first_unacked,
                            .fingerprint = fingerprint_of({"append", "x"}),
                            .owner = "anna"},
                           Duration::zero());
  }
  /// Opens a session that has a response, to request 1.
  Session open_with_response() {
    const Session session = *open();
    SessionAnswer first = ask(session, 1);
    RowBatch effect;
    first.owner.save(effect, std::string("done"));
    log->commit(std::move(effect), [](const Status& status) { CHECK(status.ok()); });
    log->pump();
    first.owner.done();
    return session;
  }
  [[nodiscard]] std::size_t rows(char kind) const {
    return disk->rows(Space::kHost, std::string(kSessionRows) + kind);
  }

  std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>();
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::unique_ptr<FailingLog> log;
  std::unique_ptr<ClientSessions> sessions;
};

}  // namespace

TEST_CASE("a log that refuses the reservation of ids, or a session, takes the next one") {
  World world;
  const bool ids_are_reserved = GENERATE(false, true);
  if (ids_are_reserved) CHECK(world.close(*world.open()).ok());
  world.log->refuse_next();
  CHECK(world.open().status().to_string() == kRefused.to_string());
  CHECK(world.sessions->live() == 0);
  CHECK(world.rows('s') == 0);

  const Result<Session> second = world.open();
  REQUIRE(second.ok());
  CHECK(world.sessions->live() == 1);
  world.start();
  CHECK(world.open()->id == second->id);
}

TEST_CASE("a session that the log refuses to close is open, and is closed by the next try") {
  World world;
  const Session session = world.open_with_response();
  world.log->refuse_next();
  CHECK(world.close(session).to_string() == kRefused.to_string());
  CHECK(world.sessions->live() == 1);
  CHECK(**world.ask(session, 1).response == "done");
  CHECK(world.rows('r') == 1);

  CHECK(world.close(session).ok());
  CHECK(world.rows('s') == 0);
  CHECK(world.rows('r') == 0);
}

TEST_CASE("a mark that the log refuses to move is moved by the next maintenance") {
  World world;
  const Session session = world.open_with_response();
  CHECK(world.sessions->heartbeat(session.id, "anna", 2).ok());
  world.log->refuse_next();
  CHECK(world.maintain().code() == StatusCode::kInvalidArgument);
  CHECK(world.rows('r') == 1);
  CHECK(world.ask(session, 1).refusal == Refusal::kStale);

  CHECK(world.maintain().ok());
  CHECK(world.rows('r') == 0);
  CHECK(world.close(session).ok());
}

TEST_CASE("a silent session that the log refuses to end is ended by the next maintenance") {
  World world;
  const Session session = world.open_with_response();
  world.clock->advance(std::chrono::hours(1));
  world.log->refuse_next();
  CHECK(world.maintain().code() == StatusCode::kInvalidArgument);
  CHECK(world.sessions->live() == 1);

  CHECK(world.maintain().ok());
  CHECK(world.sessions->live() == 0);
  CHECK(world.ask(session, 1).refusal == Refusal::kSessionExpired);
  CHECK(world.rows('s') == 0);
}

TEST_CASE("a log that fails opens no session, and a restart finds what was written") {
  World world;
  const bool ids_are_reserved = GENERATE(false, true);
  if (ids_are_reserved) CHECK(world.close(*world.open()).ok());
  const auto written = GENERATE(FailingLog::Written::kNo, FailingLog::Written::kYes);
  world.log->fail(written);
  for (int i = 0; i < 2; ++i) {
    CHECK(world.open().status().to_string() == kFailed.to_string());
    CHECK(world.sessions->live() == 0);
  }

  world.start();
  const bool is_there = ids_are_reserved && written == FailingLog::Written::kYes;
  CHECK(world.sessions->live() == (is_there ? 1 : 0));
  CHECK(world.open().ok());
  CHECK(world.rows('s') == 1);
}

TEST_CASE("a log that fails leaves a session that is closed refused until a restart tells") {
  World world;
  const Session session = world.open_with_response();
  const auto written = GENERATE(FailingLog::Written::kNo, FailingLog::Written::kYes);
  world.log->fail(written);
  CHECK(world.close(session).to_string() == kFailed.to_string());
  CHECK(world.ask(session, 1).status.code() == StatusCode::kUnavailable);
  CHECK(world.open().status().code() == StatusCode::kUnavailable);
  CHECK(world.close(session).code() == StatusCode::kUnavailable);

  world.start();
  const SessionAnswer answer = world.ask(session, 1);
  if (written == FailingLog::Written::kNo) {
    CHECK(**answer.response == "done");
  } else {
    CHECK(answer.refusal == Refusal::kSessionExpired);
    CHECK(world.rows('r') == 0);
  }
}

TEST_CASE("a log that fails makes maintenance fail, and a restart tells where the mark is") {
  World world;
  const Session session = world.open_with_response();
  CHECK(world.sessions->heartbeat(session.id, "anna", 2).ok());
  const auto written = GENERATE(FailingLog::Written::kNo, FailingLog::Written::kYes);
  world.log->fail(written);
  CHECK(world.maintain().code() == StatusCode::kUnknownOutcome);
  CHECK(world.ask(session, 1).refusal == Refusal::kStale);
  CHECK(world.maintain().ok());  // the mark may be durable: nothing is left to do
  CHECK(world.close(session).code() == StatusCode::kUnavailable);

  world.start();
  const SessionAnswer answer = world.ask(session, 1);
  if (written == FailingLog::Written::kNo) {
    CHECK(**answer.response == "done");
  } else {
    CHECK(answer.refusal == Refusal::kStale);
  }
}

TEST_CASE(
    "a request whose batch the log refuses ends with refuse(), and runs when it comes again") {
  World world;
  const Session session = world.open_with_response();
  SessionAnswer second = world.ask(session, 2, 2);
  RowBatch effect;
  second.owner.save(effect, std::string("too large"));
  world.log->refuse_next();
  std::optional<Status> refused;
  world.log->commit(std::move(effect), [&](const Status& status) { refused = status; });
  REQUIRE(refused);
  CHECK(refused->code() == StatusCode::kInvalidArgument);
  second.owner.refuse();

  SessionAnswer again = world.ask(session, 2, 2);
  CHECK(again.runs());
  RowBatch smaller;
  again.owner.save(smaller, std::string("done"));
  world.log->commit(std::move(smaller), [](const Status& status) { CHECK(status.ok()); });
  world.log->pump();
  again.owner.done();
  CHECK(world.rows('r') == 1);
}

}  // namespace pv2::testing::failing_log_test
