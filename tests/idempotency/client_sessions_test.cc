// SPDX-License-Identifier: Apache-2.0
//
// Client sessions, one promise per test. Names such as R-07 are those of the mechanisms that the
// promise is about; tests/idempotency/README.md lists them all.

#include "pv2/idempotency/client_sessions.h"

#include <pthread.h>
#include <pv2/base/mutex.h>
#include <pv2/store/memory_procedure_store.h>
#include <sched.h>

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pv2/idempotency/fingerprint.h"
#include "support/catch.h"

namespace pv2::testing::client_sessions_test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const Hash128 kAppend = fingerprint_of({"append", "x"});

/// A server with a list in its store, to which clients append; it can be restarted.
struct World {
  World() { start(); }

  /// Kills the server, if it runs, and starts it with what was durable.
  void start() {
    const auto image = disk->clone();  // what the old server drains is lost
    sessions.reset();
    rows.reset();
    disk = image;
    rows = *StoreRows::open(std::make_unique<MemoryProcedureStore>(disk));
    options.clock = clock;
    auto loaded = ClientSessions::load(*rows, options);
    load_status = loaded.status();
    if (loaded.ok()) sessions = *std::move(loaded);
  }
  void pump() {
    while (rows->store().pump()) {
    }
  }
  Session open(const std::string& token, const std::string& owner = "anna",
               std::uint32_t window = 0) {
    std::optional<Result<Session>> opened;
    sessions->open(token, owner, window, [&](Result<Session> answer) { opened = answer; });
    pump();
    REQUIRE(opened);
    REQUIRE(opened->ok());
    return **opened;
  }
  static SessionRequest request(Session session, std::uint64_t number,
                                std::uint64_t first_unacked = 1) {
    return {.session = session.id,
            .number = number,
            .first_unacked = first_unacked,
            .fingerprint = kAppend,
            .owner = "anna"};
  }
  /// The answer that there is now: a test with one thread waits for nobody.
  SessionAnswer ask(const SessionRequest& asked) {
    return sessions->begin(asked, Duration::zero());
  }
  /// Appends to the list unless the request was done before. The response is the list's length.
  SessionAnswer append(const SessionRequest& asked) {
    SessionAnswer answer = ask(asked);
    if (!answer.runs()) return answer;
    RowBatch effect;
    const std::string key = "list/" + std::to_string(length() + 1);
    effect.put(Space::kHost, key, "x");
    answer.owner.save(effect, std::to_string(length() + 1));
    CHECK(rows->commit(std::move(effect)).ok());
    answer.owner.done();
    return ask(asked);
  }
  std::size_t length() { return disk->rows(Space::kHost, "list/"); }
  void maintain() {
    Status status(StatusCode::kInternal, "no answer");
    sessions->maintain([&](const Status& answer) { status = answer; });
    pump();
    CHECK(status.to_string() == "OK");
  }
  Status close(Session session, const std::string& owner = "anna") {
    Status status(StatusCode::kInternal, "no answer");
    sessions->close(session.id, owner, [&](const Status& answer) { status = answer; });
    pump();
    return status;
  }

  std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>();
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  SessionOptions options;
  std::unique_ptr<StoreRows> rows;
  std::unique_ptr<ClientSessions> sessions;
  Status load_status;
};

std::string body(const SessionAnswer& answer) {
  if (answer.response == nullptr) return "(" + answer.status.to_string() + ")";
  return answer.response->ok() ? **answer.response : answer.response->status().to_string();
}

}  // namespace

TEST_CASE("R-01, R-14, R-15: a request that comes again gets its saved response, done once") {
  World world;
  const Session session = world.open("t");
  CHECK(body(world.append(World::request(session, 1))) == "1");
  CHECK(body(world.append(World::request(session, 2))) == "2");
  const bool restarts = GENERATE(false, true);
  if (restarts) world.start();
  CHECK(body(world.append(World::request(session, 1))) == "1");
  CHECK(body(world.append(World::request(session, 2))) == "2");
  CHECK(world.length() == 2);
}

TEST_CASE(
    "R-02: a session that is opened again with its token is the same, before it is durable too") {
  World world;
  std::vector<SessionId> ids;
  const auto remember = [&](const Result<Session>& answer) { ids.push_back(answer->id); };
  world.sessions->open("t", "anna", 0, remember);
  world.sessions->open("t", "anna", 0, remember);
  CHECK(ids.empty());
  world.pump();
  world.sessions->open("t", "anna", 0, remember);
  world.start();
  world.sessions->open("t", "anna", 0, remember);
  REQUIRE(ids.size() == 4);
  CHECK(std::set<SessionId>(ids.begin(), ids.end()).size() == 1);
  CHECK(world.sessions->live() == 1);
  CHECK(world.open("t", "bert").id != ids.front());
}

TEST_CASE("a session is opened with a token") {
  World world;
  Status status;
  world.sessions->open("", "anna", 0, [&](const Result<Session>& a) { status = a.status(); });
  CHECK(status.code() == StatusCode::kInvalidArgument);
}

TEST_CASE("R-03: the server's ids never repeat, over restarts and closed sessions") {
  World world;
  std::set<std::uint64_t> ids;
  for (int life = 0; life < 4; ++life) {
    for (int i = 0; i < 3; ++i) {
      const Session session = world.open(std::to_string(life) + "." + std::to_string(i));
      CHECK(ids.insert(session.id.value).second);
      CHECK(world.close(session).ok());
    }
    world.start();
  }
  CHECK(world.disk->rows(Space::kHost, kSessionRows) == 1);  // the bound of the ids
}

TEST_CASE("R-05: a session survives a restart with its owner, its window and its mark") {
  World world;
  const Session session = world.open("t", "anna", 3);
  CHECK(session.window == 3);
  world.append(World::request(session, 1));
  world.append(World::request(session, 2, 2));
  world.start();
  CHECK(world.append(World::request(session, 1)).refusal == Refusal::kStale);
  CHECK(world.append(World::request(session, 5)).refusal == Refusal::kWindowFull);
  SessionRequest others = World::request(session, 3);
  others.owner = "bert";
  CHECK(world.append(others).refusal == Refusal::kSessionExpired);
  CHECK(world.length() == 2);
}

TEST_CASE("R-07, R-19: a window that is full refuses new requests and forgets no response") {
  World world;
  const Session session = world.open("t", "anna", 5);
  for (std::uint64_t i = 1; i <= 5; ++i) world.append(World::request(session, i));
  const SessionAnswer sixth = world.append(World::request(session, 6));
  CHECK(sixth.refusal == Refusal::kWindowFull);
  CHECK(sixth.status.code() == StatusCode::kResourceExhausted);
  CHECK_THAT(sixth.status.to_string(), ContainsSubstring("request 6 of session"));
  CHECK(body(world.append(World::request(session, 1))) == "1");
  CHECK(body(world.append(World::request(session, 6, 2))) == "6");
  CHECK(world.append(World::request(session, 1)).refusal == Refusal::kStale);
  CHECK(world.length() == 6);
}

TEST_CASE("R-17, R-18: responses below the mark are dropped, from memory and from the store") {
  World world;
  const Session session = world.open("t");
  for (std::uint64_t i = 1; i <= 60; ++i) world.append(World::request(session, i));
  CHECK(world.sessions->responses() == 60);
  CHECK(world.sessions->heartbeat(session.id, "anna", 61).ok());
  CHECK(world.sessions->responses() == 0);
  CHECK(world.disk->rows(Space::kHost, std::string(kSessionRows) + "r") == 60);
  world.maintain();
  CHECK(world.disk->rows(Space::kHost, std::string(kSessionRows) + "r") == 0);
  world.start();
  CHECK(world.append(World::request(session, 60)).refusal == Refusal::kStale);
  CHECK(body(world.append(World::request(session, 61, 61))) == "61");
  for (std::uint64_t i = 62; i <= 300; ++i) world.append(World::request(session, i, i));
  CHECK(world.disk->rows(Space::kHost, std::string(kSessionRows) + "r") <= 2);  // window of one
}

TEST_CASE("R-08: a definite failure is saved, and a copy gets it however the world has changed") {
  World world;
  const Session session = world.open("t");
  const SessionRequest asked = World::request(session, 1);
  SessionAnswer first = world.ask(asked);
  RowBatch effect;
  first.owner.save(effect, Status(StatusCode::kAlreadyExists, "the lease is taken"));
  REQUIRE(world.rows->commit(std::move(effect)).ok());
  first.owner.done();
  if (GENERATE(false, true)) world.start();
  CHECK(body(world.append(asked)) == "ALREADY_EXISTS: the lease is taken");
  CHECK(world.length() == 0);
}

TEST_CASE("R-08: a request that was refused before it did anything may run when it comes again") {
  World world;
  const Session session = world.open("t");
  SessionAnswer first = world.ask(World::request(session, 1));
  first.owner.refuse();
  CHECK(body(world.append(World::request(session, 1))) == "1");

  SessionAnswer second = world.ask(World::request(session, 2, 2));
  RowBatch thrown_away;
  second.owner.save(thrown_away, std::string("never"));
  second.owner.refuse();
  world.append(World::request(session, 2, 2));
  world.start();  // the mark that was in the batch has become durable with the next one
  CHECK(world.append(World::request(session, 1)).refusal == Refusal::kStale);
  CHECK(world.length() == 2);
}

TEST_CASE("R-09: a set that comes again after another client's set does not undo that") {
  World world;
  std::string value;
  const auto set = [&](const SessionRequest& asked, const std::string& to) {
    SessionAnswer answer = world.ask(asked);
    if (!answer.runs()) return;
    value = to;
    RowBatch effect;
    answer.owner.save(effect, to);
    CHECK(world.rows->commit(std::move(effect)).ok());
    answer.owner.done();
  };
  const SessionRequest a = World::request(world.open("A"), 1);
  const SessionRequest b = World::request(world.open("B"), 1);
  set(a, "1");  // the reply is lost
  set(b, "2");
  set(a, "1");
  CHECK(value == "2");
}

TEST_CASE("R-10: all copies of a request get the same object") {
  World world;
  const Session session = world.open("t");
  const SavedResponse first = world.append(World::request(session, 1)).response;
  CHECK(world.append(World::request(session, 1)).response == first);
}

TEST_CASE("R-11: a number that is used for something else is refused, and the first use stands") {
  World world;
  const Session session = world.open("t");
  SessionRequest other = World::request(session, 1);
  other.fingerprint = fingerprint_of({"append", "y"});
  SessionAnswer running = world.ask(World::request(session, 1));
  CHECK(world.ask(other).refusal == Refusal::kKeyReused);
  running.owner.refuse();
  world.append(World::request(session, 1));
  if (GENERATE(false, true)) world.start();
  const SessionAnswer refused = world.append(other);
  CHECK(refused.refusal == Refusal::kKeyReused);
  CHECK(refused.response == nullptr);
  CHECK(body(world.append(World::request(session, 1))) == "1");
}

TEST_CASE("R-12: numbers may come in any order within the window, and number 0 is refused") {
  World world;
  const Session session = world.open("t");
  CHECK(body(world.append(World::request(session, 7))) == "1");
  CHECK(body(world.append(World::request(session, 3))) == "2");
  CHECK(body(world.append(World::request(session, 7))) == "1");
  CHECK(world.append(World::request(session, 0)).status.code() == StatusCode::kInvalidArgument);
}

TEST_CASE("R-16, R-23: a request of a session that is not known is refused, never run") {
  World world;
  const Session session = world.open("t");
  world.append(World::request(session, 1));
  CHECK(world.close(session).ok());
  if (GENERATE(false, true)) world.start();
  for (const std::uint64_t number : {1, 2}) {
    const SessionAnswer answer = world.append(World::request(session, number));
    CHECK(answer.refusal == Refusal::kSessionExpired);
    CHECK(answer.status.code() == StatusCode::kExpired);
    CHECK_THAT(answer.status.to_string(), ContainsSubstring("find out"));
  }
  CHECK(world.sessions->heartbeat(session.id, "anna", 1).code() == StatusCode::kExpired);
  CHECK(world.close(session).code() == StatusCode::kExpired);
  CHECK(world.length() == 1);
}

TEST_CASE(
    "R-20, R-21, R-22: a session lives while its client is heard, and is given up after that") {
  World world;
  const Session silent = world.open("silent"), busy = world.open("busy"), idle = world.open("idle");
  for (std::uint64_t minute = 1; minute <= 60; ++minute) {
    world.clock->advance(minutes(1));
    world.append(World::request(busy, minute, minute));
    CHECK(world.sessions->heartbeat(idle.id, "anna", 1).ok());
    world.maintain();
    const bool is_live = world.sessions->heartbeat(silent.id, "bert", 1).ok();
    CHECK_FALSE(is_live);  // somebody else's heartbeat is none
    CHECK(world.sessions->live() == (minute < 5 ? 3 : 2));
  }
  CHECK(world.append(World::request(silent, 1)).refusal == Refusal::kSessionExpired);
  CHECK(body(world.append(World::request(busy, 60, 60))) == "60");
}

TEST_CASE("R-23: a session that is being given up is refused for good when that is durable") {
  World world;
  const Session session = world.open("t");
  world.clock->advance(minutes(5));
  bool ended = false;
  world.sessions->maintain([&](const Status& status) { ended = status.ok(); });
  const SessionAnswer meanwhile = world.ask(World::request(session, 1));
  CHECK(meanwhile.status.code() == StatusCode::kUnavailable);
  CHECK(world.sessions->heartbeat(session.id, "anna", 1).code() == StatusCode::kUnavailable);
  std::optional<Result<Session>> opened;
  world.sessions->open("t", "anna", 0, [&](const Result<Session>& answer) { opened = answer; });
  CHECK(opened->status().code() == StatusCode::kUnavailable);
  SECTION("it becomes durable") {
    world.pump();
    CHECK(ended);
    CHECK(world.append(World::request(session, 1)).refusal == Refusal::kSessionExpired);
    CHECK(world.open("t").id != session.id);
  }
  SECTION("the server dies before: the session lives, with a fresh term") {
    world.start();
    CHECK(world.open("t").id == session.id);
    CHECK(body(world.append(World::request(session, 1))) == "1");
  }
}

// The log is called between the sections. So what it sees with the first batch is what one section
// has done.
TEST_CASE("the sessions that maintain() gives up while requests wait are a bounded number") {
  struct WatchingLog final : RowLog {
    explicit WatchingLog(StoreRows& watched) : rows(watched) {}
    void commit(RowBatch batch, std::function<void(Status)> done) override {
      on_commit();
      rows.commit(std::move(batch), std::move(done));
    }
    Status scan(std::string_view prefix, const RowVisitor& visit) override {
      return rows.scan(prefix, visit);
    }
    StoreRows& rows;
    std::function<void()> on_commit = [] {};
  };
  const auto [count, responses] = GENERATE(std::pair(5000, 0), std::pair(20, 300));
  World world;
  WatchingLog log(*world.rows);
  const auto sessions =
      *ClientSessions::load(log, {.clock = world.clock, .window = 512, .window_max = 512});
  std::vector<SessionId> ids;
  for (int i = 0; i < count; ++i) {
    sessions->open("t" + std::to_string(i), "anna", 0,
                   [&](const Result<Session>& answer) { ids.push_back(answer->id); });
    world.pump();
  }
  for (const SessionId id : ids) {
    for (int number = 1; number <= responses; ++number) {
      SessionAnswer answer = sessions->begin(
          World::request({.id = id}, static_cast<std::uint64_t>(number)), Duration::zero());
      RowBatch effect;
      answer.owner.save(effect, std::string("done"));
      CHECK(world.rows->commit(std::move(effect)).ok());
      answer.owner.done();
    }
  }
  REQUIRE(sessions->live() == static_cast<std::size_t>(count));

  std::vector<std::size_t> live;
  log.on_commit = [&] { live.push_back(sessions->live()); };
  world.clock->advance(minutes(6));
  std::optional<Status> done;
  sessions->maintain([&](const Status& status) { done = status; });
  CHECK_FALSE(done);
  world.pump();

  CHECK(done == Status());
  CHECK(sessions->live() == 0);
  CHECK(world.disk->rows(Space::kHost, std::string(kSessionRows) + "r") == 0);
  live.push_back(0);
  std::size_t before = static_cast<std::size_t>(count);
  for (const std::size_t now : live) {
    const std::size_t rows = (before - now) * (1 + static_cast<std::size_t>(responses));
    CHECK(rows <= 1024 + 301);
    before = now;
  }
}

namespace {

/// Is asked in each section of maintain(), and by each heartbeat, both times under the mutex of the
/// table. The first section goes on when another thread sleeps until that mutex is free.
class SectionsClock final : public Clock {
 public:
  /// Called on the thread that calls maintain().
  void watch() {
    maintains_.store(std::this_thread::get_id());
    is_watching_.store(true);
  }
  void wait_for_first() const { sections_.wait(0); }
  [[nodiscard]] int sections() const { return sections_.load(); }
  /// How many sections had begun when the other thread had its turn.
  [[nodiscard]] int sections_before_turn() const { return before_turn_.load(); }

  [[nodiscard]] WallTime wall_now() const override { return time_.wall_now(); }
  [[nodiscard]] SteadyTime steady_now() const override {
    if (is_watching_.load() && std::this_thread::get_id() != maintains_.load()) {
      before_turn_.store(sections_.load());
    } else if (is_watching_.load()) {
      const std::uint64_t slept = mutex_contention().slept;
      if (sections_.fetch_add(1) == 0) {
        sections_.notify_all();
        // Without a yield: after one the system would let the other thread run first.
        while (mutex_contention().slept == slept) {
        }
      }
    }
    return time_.steady_now();
  }

 private:
  ManualClock time_;
  std::atomic<std::thread::id> maintains_;
  std::atomic<bool> is_watching_{false};
  mutable std::atomic<int> sections_{0};
  mutable std::atomic<int> before_turn_{0};
};

// A thread of this kind that wakes up does not push the one aside that has woken it, as if it had a
// CPU of its own and needed a while to wake up.
void wake_up_slowly() {
  const sched_param none{};
  ::pthread_setschedparam(::pthread_self(), SCHED_BATCH, &none);
}

}  // namespace

TEST_CASE("a heartbeat does not wait for all sections of maintain(), even if they change nothing") {
  World world;
  const auto clock = std::make_shared<SectionsClock>();
  const auto sessions = *ClientSessions::load(*world.rows, {.clock = clock});
  SessionId id;
  for (int i = 0; i < 40 * 1024; ++i) {
    sessions->open("t" + std::to_string(i), "anna", 0,
                   [&](const Result<Session>& answer) { id = answer->id; });
    if (i % 1000 == 999) world.pump();
  }
  world.pump();

  Status heard(StatusCode::kInternal, "no answer");
  std::thread client([&] {
    wake_up_slowly();
    clock->wait_for_first();
    heard = sessions->heartbeat(id, "anna", 1);
  });
  clock->watch();
  std::optional<Status> done;
  sessions->maintain([&](const Status& status) { done = status; });
  const int sections = clock->sections();
  client.join();

  CHECK(done == Status());
  CHECK(heard.to_string() == "OK");
  CHECK(sections == 40);
  CHECK(clock->sections_before_turn() <= 20);  // without giving way: 40
}

TEST_CASE("R-23: a session is not given up within a term after a restart, nor by the wall clock") {
  World world;
  const Session session = world.open("t");
  world.clock->advance(minutes(4));
  world.start();
  world.clock->advance(minutes(4));
  world.clock->jump_wall(std::chrono::hours(24));
  world.maintain();
  CHECK(world.append(World::request(session, 1)).refusal == Refusal::kNone);
}

TEST_CASE("a session with a running request is neither given up nor closed") {
  World world;
  const Session session = world.open("t");
  SessionAnswer running = world.ask(World::request(session, 1));
  world.clock->advance(std::chrono::hours(1));
  world.maintain();
  CHECK(world.close(session).code() == StatusCode::kFailedPrecondition);
  CHECK(world.sessions->live() == 1);
  running.owner.refuse();
  CHECK(world.close(session).ok());
}

TEST_CASE("R-24: a copy waits for the running request, with its own time limit") {
  World world;
  const Session session = world.open("t");
  const SessionRequest asked = World::request(session, 1);
  SessionAnswer running = world.ask(asked);
  const SessionAnswer hurried = world.sessions->begin(asked, Duration::zero());
  CHECK(hurried.refusal == Refusal::kInProgress);
  CHECK(hurried.status.code() == StatusCode::kDeadlineExceeded);
  std::optional<SessionAnswer> answer;
  std::thread copy([&] { answer = world.sessions->begin(asked); });
  RowBatch effect;
  running.owner.save(effect, std::string("done"));
  CHECK(world.rows->commit(std::move(effect)).ok());
  running.owner.done();
  copy.join();
  CHECK(body(*answer) == "done");
}

TEST_CASE(
    "a copy takes over when the running request was refused, and a ticket is cancelled once") {
  World world;
  const SessionRequest asked = World::request(world.open("t"), 1);
  SessionAnswer running = world.ask(asked);
  std::vector<SessionAnswer> answers;
  const auto keep = [&](SessionAnswer answer) { answers.push_back(std::move(answer)); };
  const std::uint64_t first = world.sessions->begin_async(asked, keep);
  const std::uint64_t second = world.sessions->begin_async(asked, keep);
  CHECK(world.sessions->cancel(asked.session, 1, first));
  CHECK_FALSE(world.sessions->cancel(asked.session, 1, first));
  running.owner.refuse();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].runs());
  CHECK_FALSE(world.sessions->cancel(asked.session, 1, second));
  answers[0].owner.refuse();
}

TEST_CASE("a request whose owner died without a word is not run again before a restart tells") {
  World world;
  const SessionRequest asked = World::request(world.open("t"), 1);
  const bool is_durable = GENERATE(false, true);
  {
    SessionAnswer answer = world.ask(asked);
    RowBatch effect;
    effect.put(Space::kHost, "list/1", "x");
    answer.owner.save(effect, std::string("1"));
    if (is_durable) CHECK(world.rows->commit(std::move(effect)).ok());
  }
  CHECK(world.ask(asked).refusal == Refusal::kUnknown);
  CHECK(world.ask(asked).status.code() == StatusCode::kUnknownOutcome);
  world.start();
  CHECK(body(world.append(asked)) == "1");
  CHECK(world.length() == 1);
}

TEST_CASE("recovery resolves a request whose owner died, without a restart") {
  World world;
  const Session session = world.open("t");
  world.append(World::request(session, 1));
  const SessionRequest asked = World::request(session, 2, 2);
  RowBatch effect;
  effect.put(Space::kHost, "list/2", "x");
  {
    SessionAnswer answer = world.ask(asked);
    answer.owner.save(effect, std::string("2"));
  }
  SECTION("its batch became durable") {
    CHECK(world.rows->commit(std::move(effect)).ok());
    CHECK(world.sessions->resolve_done(session.id, 2, std::string("2")));
  }
  SECTION("its batch was never sent") { CHECK(world.sessions->resolve_not_done(session.id, 2)); }
  CHECK_FALSE(world.sessions->resolve_done(session.id, 2, std::string("3")));
  CHECK_FALSE(world.sessions->resolve_not_done(session.id, 9));
  CHECK(body(world.append(asked)) == "2");
  CHECK(world.length() == 2);
  world.start();
  CHECK(world.append(World::request(session, 1)).refusal == Refusal::kStale);
  CHECK(world.close(session).ok());
}

TEST_CASE("a response below a mark that is not durable is saved: a crash may take the mark back") {
  World world;
  const Session session = world.open("t");
  SessionAnswer second = world.ask(World::request(session, 2));
  SessionAnswer third = world.ask(World::request(session, 3, 3));
  RowBatch of_third, of_second;
  third.owner.save(of_third, std::string("third"));  // would make the mark durable
  of_second.put(Space::kHost, "list/1", "x");
  second.owner.save(of_second, std::string("second"));
  REQUIRE(world.rows->commit(std::move(of_second)).ok());
  second.owner.done();
  third.owner.refuse();
  world.start();
  CHECK(body(world.append(World::request(session, 2))) == "second");  // a late copy
  CHECK(world.length() == 1);
  world.append(World::request(session, 3, 3));
  world.maintain();
  CHECK(world.disk->rows(Space::kHost, std::string(kSessionRows) + "r") == 1);
}

TEST_CASE("a copy that has waited does not take over after its deadline, nor below the mark") {
  World world;
  const Session session = world.open("t");
  SessionRequest asked = World::request(session, 1);
  SessionAnswer running = world.ask(asked);
  std::vector<Refusal> answers;
  const auto keep = [&](const SessionAnswer& answer) { answers.push_back(answer.refusal); };
  asked.deadline = world.clock->wall_now() + seconds(1);
  world.sessions->begin_async(asked, keep);
  asked.deadline.reset();
  world.sessions->begin_async(asked, keep);
  Refusal expected = Refusal::kDeadlinePassed;
  SECTION("deadline") {
    world.clock->advance(seconds(1));
    running.owner.refuse();
    CHECK(answers == std::vector{expected, Refusal::kNone});
  }
  SECTION("mark") {
    CHECK(world.sessions->heartbeat(session.id, "anna", 2).ok());
    running.owner.refuse();
    CHECK(answers == std::vector{Refusal::kStale, Refusal::kStale});
  }
}

TEST_CASE("what contradicts itself or is too long is refused, and harms no other session") {
  World world;
  const Session session = world.open("t");
  CHECK(world.append(World::request(session, 1, 2)).status.code() == StatusCode::kInvalidArgument);
  CHECK(body(world.append(World::request(session, 1))) == "1");
  for (const auto& [token, owner] :
       {std::pair(std::string(1025, 't'), std::string()), {"t", std::string(1025, 'o')}}) {
    Status status;
    world.sessions->open(token, owner, 0, [&](const Result<Session>& a) { status = a.status(); });
    CHECK(status.code() == StatusCode::kInvalidArgument);
  }
  for (const std::uint32_t window : {0U, 513U}) {
    world.options.window = window;
    world.start();
    CHECK(world.load_status.code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("one batch deletes no more responses than a store takes") {
  World world;
  const Session session = world.open("t", "anna", 1);
  // The batch that would make the mark durable has an owner that says nothing.
  world.append(World::request(session, 1));
  SessionAnswer silent = world.ask(World::request(session, 2, 2));
  RowBatch never_sent;
  silent.owner.save(never_sent, std::string());
  for (std::uint64_t i = 3; i <= 3000; ++i) world.append(World::request(session, i, i));
  const std::string responses = std::string(kSessionRows) + "r";
  std::size_t before = world.disk->rows(Space::kHost, responses);
  CHECK(before > 2900);
  world.start();
  CHECK(body(world.append(World::request(session, 3001, 3001))) == "3000");  // deletes too
  ++before;
  for (int round = 0; round < 4; ++round) {
    const std::size_t now = world.disk->rows(Space::kHost, responses);
    CHECK(before - now <= 1000);
    before = now;
    world.maintain();
  }
  CHECK(before == 1);
}

TEST_CASE("an answer that throws keeps no other copy from its answer") {
  World world;
  const SessionRequest asked = World::request(world.open("t"), 1);
  SessionAnswer running = world.ask(asked);
  int answers = 0;
  world.sessions->begin_async(asked, [](const SessionAnswer&) { throw 1; });
  world.sessions->begin_async(asked, [&](const SessionAnswer&) { ++answers; });
  running.owner = RequestOwner();
  CHECK(answers == 1);
}

TEST_CASE("what an answer throws that is given at once is swallowed, and its owner has died") {
  World world;
  const SessionRequest asked = World::request(world.open("t"), 1);
  CHECK(world.sessions->begin_async(asked, [](const SessionAnswer&) { throw 1; }) == 0);
  CHECK(world.ask(asked).refusal == Refusal::kUnknown);
}

TEST_CASE("a response is kept for a term after its run, however long that was") {
  World world;
  const Session session = world.open("t");
  SessionAnswer running = world.ask(World::request(session, 1));
  world.clock->advance(minutes(6));
  RowBatch effect;
  running.owner.save(effect, std::string("done"));
  CHECK(world.rows->commit(std::move(effect)).ok());
  running.owner.done();
  world.maintain();
  CHECK(body(world.append(World::request(session, 1))) == "done");
}

TEST_CASE("a new request after its deadline is not run, a known one is answered") {
  World world;
  const Session session = world.open("t");
  SessionRequest asked = World::request(session, 1);
  asked.deadline = world.clock->wall_now() + seconds(1);
  world.append(asked);
  world.clock->advance(seconds(1));
  CHECK(body(world.append(asked)) == "1");
  asked.number = 2;
  CHECK(world.append(asked).refusal == Refusal::kDeadlinePassed);
  asked.deadline.reset();
  CHECK(body(world.append(asked)) == "2");
}

TEST_CASE("sessions and windows are bounded") {
  World world;
  world.options.sessions_max = 2;
  world.start();
  CHECK(world.open("a", "anna", 100'000).window == 512);
  world.open("b");
  Status refused;
  world.sessions->open("c", "anna", 0, [&](const Result<Session>& a) { refused = a.status(); });
  CHECK(refused.code() == StatusCode::kResourceExhausted);
  CHECK(world.open("b").window == 64);
}

TEST_CASE("the saved responses of a session are bounded in bytes, and none is forgotten") {
  World world;
  world.options.session_bytes_max = 1000;  // a response counts for 256 bytes and its text
  world.start();
  const Session session = world.open("t");
  for (std::uint64_t i = 1; i <= 4; ++i) CHECK(world.append(World::request(session, i)).response);
  const SessionAnswer fifth = world.append(World::request(session, 5));
  CHECK(fifth.refusal == Refusal::kWindowFull);
  CHECK_THAT(fifth.status.to_string(), ContainsSubstring("session_bytes_max"));
  CHECK(body(world.append(World::request(session, 1))) == "1");  // a copy gets its response
  CHECK(world.append(World::request(world.open("u"), 1)).response);

  CHECK(world.append(World::request(session, 5, 2)).response);  // the client has taken one
  CHECK(world.append(World::request(session, 6, 2)).refusal == Refusal::kWindowFull);
  CHECK(world.append(World::request(session, 6, 6)).response);
}

TEST_CASE("the saved responses of all sessions are bounded in bytes") {
  World world;
  world.options.bytes_max = 1000;
  world.start();
  const Session one = world.open("t"), other = world.open("u");
  for (std::uint64_t i = 1; i <= 4; ++i) CHECK(world.append(World::request(one, i)).response);
  const SessionAnswer refused = world.append(World::request(other, 1));
  CHECK(refused.refusal == Refusal::kWindowFull);
  CHECK_THAT(refused.status.to_string(), ContainsSubstring("(bytes_max)"));

  CHECK(world.close(one).ok());
  CHECK(world.append(World::request(other, 1)).response);
}

TEST_CASE("the request at the mark runs although later responses have filled the bound") {
  World world;
  world.options.session_bytes_max = 1000;
  world.start();
  const Session session = world.open("t");
  world.ask(World::request(session, 1)).owner.refuse();  // the host was overloaded
  for (std::uint64_t i = 2; i <= 5; ++i) CHECK(world.append(World::request(session, i)).response);
  CHECK(world.append(World::request(session, 6)).refusal == Refusal::kWindowFull);

  CHECK(body(world.append(World::request(session, 1))) == "5");

  CHECK(world.append(World::request(session, 6)).refusal == Refusal::kWindowFull);
  CHECK(world.append(World::request(session, 6, 6)).response);
  CHECK(world.sessions->responses() == 1);
}

TEST_CASE("sessions that have filled the bound of all together get out of it, each by its mark") {
  World world;
  world.options.bytes_max = 1000;
  world.start();
  const Session sessions[] = {world.open("t"), world.open("u")};
  for (const Session& session : sessions) {
    world.ask(World::request(session, 1)).owner.refuse();
  }
  for (const std::uint64_t number : {2, 3}) {
    for (const Session& session : sessions) {
      CHECK(world.append(World::request(session, number)).response);
    }
  }
  const Session empty = world.open("v");
  CHECK(world.append(World::request(empty, 1)).refusal == Refusal::kWindowFull);

  for (const Session& session : sessions) {
    CHECK(world.append(World::request(session, 1)).response);
    CHECK(world.append(World::request(session, 4, 4)).response);
  }
  CHECK(world.append(World::request(empty, 1)).response);
}

TEST_CASE("a session with more responses than a smaller limit allows is loaded, and goes on") {
  World world;
  const Session session = world.open("t");
  for (std::uint64_t i = 1; i <= 4; ++i) CHECK(world.append(World::request(session, i)).response);
  world.options.session_bytes_max = world.options.bytes_max = 300;
  world.start();
  REQUIRE(world.load_status.ok());
  CHECK(world.sessions->responses() == 4);
  CHECK(body(world.append(World::request(session, 4))) == "4");
  CHECK(world.append(World::request(session, 5)).refusal == Refusal::kWindowFull);
  CHECK(world.append(World::request(session, 5, 5)).response);
}

TEST_CASE("a stop answers copies that wait, and owners go on") {
  World world;
  const Session session = world.open("t");
  const SessionRequest asked = World::request(session, 1);
  SessionAnswer running = world.ask(asked);
  std::optional<SessionAnswer> copy;
  world.sessions->begin_async(asked, [&](SessionAnswer answer) { copy = std::move(answer); });
  world.sessions->stop();
  REQUIRE(copy);
  CHECK(copy->status.code() == StatusCode::kStopping);
  CHECK(world.ask(asked).status.code() == StatusCode::kStopping);
  world.sessions.reset();
  RowBatch effect;
  running.owner.save(effect, std::string("done"));
  CHECK(world.rows->commit(std::move(effect)).ok());
  running.owner.done();
  world.start();
  CHECK(body(world.ask(asked)) == "done");
}

TEST_CASE("a row of sessions that is damaged stops the start") {
  World world;
  const Session session = world.open("t");
  world.append(World::request(session, 1));
  const char kind = GENERATE('s', 'r', 'i');
  std::string damaged_key;
  CHECK(world.rows
            ->scan(std::string(kSessionRows) + kind,
                   [&](const StoredRow& row) {
                     damaged_key = row.key;
                     return Status();
                   })
            .ok());
  REQUIRE_FALSE(damaged_key.empty());
  std::string value = *world.disk->get(Space::kHost, damaged_key);
  value.back() = static_cast<char>(value.back() ^ 1);
  world.disk->put(Space::kHost, damaged_key, value);
  world.start();
  CHECK(world.load_status.code() == StatusCode::kCorruption);
  CHECK_THAT(world.load_status.to_string(), ContainsSubstring("loading sessions"));
}

TEST_CASE("sessions without the row of the ids in use stop the start: ids would be given again") {
  World world;
  world.open("t");
  std::string bound_key;
  CHECK(world.rows
            ->scan(std::string(kSessionRows) + 'i',
                   [&](const StoredRow& row) {
                     bound_key = row.key;
                     return Status();
                   })
            .ok());
  REQUIRE(world.disk->erase(Space::kHost, bound_key));
  world.start();
  CHECK(world.load_status.code() == StatusCode::kCorruption);
  CHECK_THAT(world.load_status.to_string(), ContainsSubstring("is missing, though there are"));
}

}  // namespace pv2::testing::client_sessions_test
