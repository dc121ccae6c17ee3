// SPDX-License-Identifier: Apache-2.0
//
// What every store that keeps records promises, run on each of them: memory and LevelDB, with a
// thread and pumped, on a real directory and on the file system that forgets. What only one of them
// does has its own file.

#include <array>
#include <atomic>
#include <deque>
#include <thread>

#include "store_fixture.h"
#include "support/catch.h"
#include "support/row_model.h"

namespace pv2::testing::store_conformance_test {
namespace {

using Strings = std::vector<std::string>;

// Runs `body` on every kind of store, each on an empty place, with the kind in the message of a
// failure.
void on_every_store(const std::function<void(const StorePlace&)>& body) {
  for (const StorePlace& place : all_places()) {
    INFO("store: " << place.kind);
    body(place);
  }
}

TEST_CASE("batches become durable in the order of their stamps and come back in that order") {
  on_every_store([](const StorePlace& place) {
    RecordingSink sink;
    const auto store = place.open(kTestLimits);
    REQUIRE(store->recover_lease(sink).ok());

    std::deque<Request> requests(200);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i].number = static_cast<int>(i);
      requests[i].batch.put(Space::kProcedure, std::to_string(i), "value");
      REQUIRE(store->commit(requests[i]) == CommitAnswer::kQueued);
    }
    const auto answers = sink.wait_for(requests.size(), *store);

    REQUIRE(answers.size() == requests.size());
    for (std::size_t i = 0; i < answers.size(); ++i) {
      REQUIRE(answers[i].number == static_cast<int>(i));
      REQUIRE(answers[i].status.ok());
      REQUIRE(answers[i].sequence.value == i + 1);
    }
    REQUIRE(sink.lists() <= requests.size());
    store->close();
  });
}

TEST_CASE("commits of several threads are stamped once each and come back in stamp order") {
  on_every_store([](const StorePlace& place) {
    RecordingSink sink;
    const auto store = place.open(kTestLimits);
    REQUIRE(store->recover_lease(sink).ok());

    std::deque<Request> requests(400);
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        for (std::size_t i = thread; i < requests.size(); i += 4) {
          requests[i].number = static_cast<int>(i);
          requests[i].batch.insert(Space::kProcedure, std::to_string(i), "value");
          store->commit(requests[i]);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const auto answers = sink.wait_for(requests.size(), *store);

    for (std::size_t i = 0; i < answers.size(); ++i) REQUIRE(answers[i].sequence.value == i + 1);
    store->close();
  });
}

TEST_CASE("the sink may commit the request again while it is called") {
  on_every_store([](const StorePlace& place) {
    RecordingSink sink;
    const auto store = place.open(kTestLimits);
    sink.then = [&](Request& request) {
      if (request.number == 20) return;
      ++request.number;
      request.batch.clear();
      request.batch.put(Space::kHost, "counter", std::to_string(request.number));
      store->commit(request);
    };
    REQUIRE(store->recover_lease(sink).ok());

    Request request;
    store->commit(request);
    sink.wait_for(21, *store);

    REQUIRE(*store->get(Space::kHost, "counter").value() == "20");
    store->close();
  });
}

TEST_CASE("a list is taken whole, in order, and one batch of it may be empty") {
  on_every_store([](const StorePlace& place) {
    RecordingSink sink;
    const auto store = place.open(kTestLimits);
    REQUIRE(store->recover_lease(sink).ok());
    std::deque<Request> requests(3);
    CommitList list;
    for (int i = 0; i < 3; ++i) {
      requests[i].number = i;
      if (i != 1) requests[i].batch.put(Space::kEngine, "highest", std::to_string(i));
      list.push_back(requests[i]);
    }

    REQUIRE(store->commit_all(list) == CommitAnswer::kQueued);
    const auto answers = sink.wait_for(3, *store);

    REQUIRE(list.empty());
    REQUIRE(answers[0].number == 0);
    REQUIRE(answers[2].sequence.value == 3);
    REQUIRE(*store->get(Space::kEngine, "highest").value() == "2");
    store->close();
  });
}

TEST_CASE("get returns a row once its commit is durable, and nothing for a missing row") {
  on_every_store([](const StorePlace& place) {
    RecordingSink sink;
    const auto store = place.open(kTestLimits);
    REQUIRE(store->recover_lease(sink).ok());
    REQUIRE_FALSE(store->get(Space::kNonce, "a").value().has_value());

    Request first;
    first.batch.insert(Space::kNonce, "a", "1");
    first.batch.insert(Space::kNonce, std::string_view("\0\xff", 2), std::string_view("\0v", 2));
    first.batch.insert(Space::kNonce, "empty", "");
    store->commit(first);
    sink.wait_for(1, *store);

    REQUIRE(*store->get(Space::kNonce, "a").value() == "1");
    REQUIRE(*store->get(Space::kNonce, std::string_view("\0\xff", 2)).value() ==
            std::string_view("\0v", 2));
    REQUIRE(store->get(Space::kNonce, "empty").value()->empty());
    REQUIRE_FALSE(store->get(Space::kHost, "a").value().has_value());
    REQUIRE_FALSE(store->get(Space::kNonce, "").value().has_value());

    Request second;
    second.batch.erase(Space::kNonce, "a");
    store->commit(second);
    sink.wait_for(2, *store);
    REQUIRE_FALSE(store->get(Space::kNonce, "a").value().has_value());
    store->close();
  });
}

TEST_CASE("scan visits the rows of one space that begin with the prefix, in key order") {
  on_every_store([](const StorePlace& place) {
    RecordingSink sink;
    const auto store = place.open(kTestLimits);
    REQUIRE(store->recover_lease(sink).ok());
    Request request;
    for (const char* key : {"b/2", "b/1", "a", "b", "c", "b/10"}) {
      request.batch.put(Space::kHost, key, key);
    }
    request.batch.put(Space::kNonce, "b/1", "other space");
    store->commit(request);
    sink.wait_for(1, *store);

    REQUIRE(scan_rows(*store, Space::kHost, "b/") == Strings{"b/1=b/1", "b/10=b/10", "b/2=b/2"});
    REQUIRE(scan_rows(*store, Space::kHost, "").size() == 6);
    REQUIRE(scan_rows(*store, Space::kHost, "d").empty());
    REQUIRE(scan_rows(*store, Space::kEngine, "").empty());

    const Status stopped = store->scan(
        Space::kHost, "", [](const StoredRow&) { return Status(StatusCode::kAborted, "enough"); });
    REQUIRE(stopped.code() == StatusCode::kAborted);
    store->close();
  });
}

TEST_CASE("acknowledged commits are there after a reopen, and sequences go on") {
  on_every_store([](const StorePlace& place) {
    CommitSequence last;
    for (int life = 0; life < 3; ++life) {
      RecordingSink sink;
      const auto store = place.open(kTestLimits);
      REQUIRE(store->recover_lease(sink).ok());
      REQUIRE(load_rows(*store).size() == static_cast<std::size_t>(life));

      Request request;
      request.batch.insert(Space::kProcedure, std::to_string(life), "v");
      store->commit(request);
      const auto answers = sink.wait_for(1, *store);
      REQUIRE(answers[0].sequence > last);
      last = answers[0].sequence;
      store->close();
    }
    RecordingSink sink;
    const auto store = place.open(kTestLimits);
    REQUIRE(store->recover_lease(sink).ok());
    REQUIRE(load_rows(*store) == Strings{"P:0=v@1", "P:1=v@2", "P:2=v@3"});
    store->close();
  });
}

void compare(ProcedureStore& store, const RowModel& model, Random& random) {
  REQUIRE(load_rows(store) == model.lines());
  for (const Space space : {Space::kHost, Space::kNonce, Space::kProcedure}) {
    const std::string key = std::to_string(random.below(12));
    const std::string* const expected = model.find(space, key);
    const auto found = store.get(space, key);
    REQUIRE(found.ok());
    REQUIRE(found.value().has_value() == (expected != nullptr));
    if (expected != nullptr) REQUIRE(**found == *expected);
  }
}

TEST_CASE("after each of many random commits, and after each reopen, the rows are those of a map") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    on_every_store([seed](const StorePlace& place) {
      INFO("seed " << seed);
      Random random(seed);
      RowModel model;
      std::uint64_t last = 0;
      for (int life = 0; life < 6; ++life) {
        RecordingSink sink;
        const auto store = place.open(kTestLimits);
        REQUIRE(store->recover_lease(sink).ok());
        compare(*store, model, random);
        std::deque<Request> requests;
        for (std::uint64_t left = random.below(40); left > 0; --left) {
          for (std::uint64_t group = 1 + random.below(3); group > 0; --group) {
            Request& request = requests.emplace_back();
            model.fill(random, request.batch, ++last);
            store->commit(request);
          }
          const auto answers = sink.wait_for(requests.size(), *store);
          REQUIRE(answers.back().status.ok());
          REQUIRE(answers.back().sequence.value == last);
          compare(*store, model, random);
        }
        if (random.below(2) == 0) store->close();  // else a crash, after which all is there as well
      }
    });
  }
}

// Commit k inserts the row k, deletes the row k - 10, and so a scan finds ten rows in a line.
TEST_CASE("a scan sees the rows as of one commit, while others are made") {
  constexpr int kCommits = 150;
  constexpr int kRows = 10;
  const auto key_of = [](int number) { return std::to_string(10'000 + number); };
  on_every_store([&](const StorePlace& place) {
    RecordingSink sink;
    const auto store = place.open(kTestLimits);
    REQUIRE(store->recover_lease(sink).ok());
    std::atomic<bool> done = false;
    std::vector<std::string> wrong;
    std::thread reader([&] {
      while (!done.load()) {
        const Strings rows = scan_rows(*store, Space::kHost, "");
        const int first = rows.empty() ? 0 : std::stoi(rows.front()) - 10'000;
        for (std::size_t i = 0; i < rows.size(); ++i) {
          if (rows[i] != key_of(first + static_cast<int>(i)) + "=v") wrong.push_back(rows[i]);
        }
        const bool full = first == 0 ? rows.size() <= kRows : rows.size() == kRows;
        if (!full) wrong.push_back(std::to_string(rows.size()) + " rows from " + key_of(first));
      }
    });
    std::deque<Request> requests;
    for (int i = 0; i < kCommits; ++i) {
      Request& request = requests.emplace_back();
      request.batch.insert(Space::kHost, key_of(i), "v");
      if (i >= kRows) request.batch.erase(Space::kHost, key_of(i - kRows));
      store->commit(request);
      sink.wait_for(requests.size(), *store);
    }
    done = true;
    reader.join();

    REQUIRE(wrong == Strings{});
    REQUIRE(scan_rows(*store, Space::kHost, "").size() == kRows);
    store->close();
  });
}

TEST_CASE("load visits every space in order, and stops at the first failure of its visitor") {
  on_every_store([](const StorePlace& place) {
    {
      RecordingSink sink;
      const auto store = place.open(kTestLimits);
      REQUIRE(store->recover_lease(sink).ok());
      Request request;
      request.batch.put(Space::kProcedure, "p", "1");
      request.batch.put(Space::kEngine, "e", "2");
      request.batch.put(Space::kNonce, "n", "3");
      request.batch.put(Space::kHost, "h", "4");
      request.batch.update(Space::kHost, "h", "5");
      store->commit(request);
      sink.wait_for(1, *store);
      store->close();
    }
    RecordingSink sink;
    const auto store = place.open(kTestLimits);
    REQUIRE(store->recover_lease(sink).ok());
    REQUIRE(load_rows(*store) == Strings{"E:e=2@1", "H:h=5@1", "N:n=3@1", "P:p=1@1"});

    int visited = 0;
    const Status status = visit_all(*store, [&](const StoredRow&) {
      ++visited;
      return visited == 2 ? Status(StatusCode::kCorruption, "bad record") : Status();
    });
    REQUIRE(status == Status(StatusCode::kCorruption, "bad record"));
    REQUIRE(visited == 2);
    store->close();
  });
}

TEST_CASE("close makes queued commits durable, may be repeated, and refuses later commits") {
  on_every_store([](const StorePlace& place) {
    RecordingSink sink;
    std::deque<Request> requests(50);
    {
      const auto store = place.open(kTestLimits);
      REQUIRE(store->recover_lease(sink).ok());
      for (std::size_t i = 0; i < requests.size(); ++i) {
        requests[i].batch.insert(Space::kProcedure, std::to_string(i), "v");
        store->commit(requests[i]);
      }
      store->close();
      REQUIRE(sink.answers().size() == requests.size());
      store->close();

      Request late;
      late.batch.insert(Space::kProcedure, "late", "v");
      REQUIRE(store->commit(late) == CommitAnswer::kDurable);
      REQUIRE(late.status.code() == StatusCode::kStopping);
      REQUIRE_THAT(std::string(late.status.message()), ContainsSubstring("closed"));
      CommitList list;
      list.push_back(late);
      REQUIRE(store->commit_all(list) == CommitAnswer::kDurable);
      REQUIRE(list.size() == 1);
      REQUIRE_FALSE(store->pump());
    }
    const auto store = place.open(kTestLimits);
    REQUIRE(store->recover_lease(sink).ok());
    REQUIRE(load_rows(*store).size() == requests.size());
    store->close();
  });
}

TEST_CASE("threads that close a store at the same time all return after the end") {
  on_every_store([](const StorePlace& place) {
    constexpr std::size_t kThreads = 3;
    constexpr std::size_t kCommits = 50;
    if (place.kind.find("pumped") != std::string::npos) return;  // one thread pumps and closes it
    for (int round = 0; round < 10; ++round) {
      RecordingSink sink;
      std::deque<Request> requests(kCommits);
      const auto store = place.open(kTestLimits);
      REQUIRE(store->recover_lease(sink).ok());
      for (std::size_t i = 0; i < kCommits; ++i) {
        requests[i].batch.put(Space::kProcedure, std::to_string(i), "v");
        store->commit(requests[i]);
      }
      std::array<std::size_t, kThreads> answered{};
      std::vector<std::thread> threads;
      for (std::size_t& seen : answered) {
        threads.emplace_back([&] {
          store->close();
          seen = sink.answers().size();
        });
      }
      for (std::thread& thread : threads) thread.join();
      for (const std::size_t seen : answered) CHECK(seen == kCommits);
    }
  });
}

TEST_CASE("a store that was never opened can be closed and destroyed") {
  on_every_store([](const StorePlace& place) {
    place.open(kTestLimits)->close();
    place.open(kTestLimits);
  });
}

TEST_CASE("a batch up to the limits is committed whole") {
  on_every_store([](const StorePlace& place) {
    RecordingSink sink;
    const auto store = place.open(kTestLimits);
    REQUIRE(store->limits().batch_operations == kTestLimits.batch_operations);
    REQUIRE(store->recover_lease(sink).ok());
    Request request;
    for (std::size_t i = 0; i < kTestLimits.batch_operations; ++i) {
      request.batch.insert(Space::kHost, std::to_string(i), std::string(500, 'x'));
    }
    store->commit(request);

    REQUIRE(sink.wait_for(1, *store)[0].status.ok());
    REQUIRE(scan_rows(*store, Space::kHost, "").size() == kTestLimits.batch_operations);
    store->close();
  });
}

TEST_CASE("a batch over the limits fails in its turn, and nothing is written after it") {
  on_every_store([](const StorePlace& place) {
    RecordingSink sink;
    {
      const auto store = place.open({.batch_operations = 2, .batch_bytes = 1'000});
      REQUIRE(store->recover_lease(sink).ok());
      std::deque<Request> requests(3);
      requests[0].batch.insert(Space::kHost, "before", "v");
      store->commit(requests[0]);
      sink.wait_for(1, *store);
      for (const char* key : {"a", "b", "c"}) requests[1].batch.insert(Space::kHost, key, "v");
      store->commit(requests[1]);
      requests[2].batch.insert(Space::kHost, "after", "v");
      store->commit(requests[2]);
      const auto answers = sink.wait_for(3, *store);

      REQUIRE(answers[0].status.ok());
      REQUIRE(answers[1].status.code() == StatusCode::kInvalidArgument);
      REQUIRE_THAT(std::string(answers[1].status.message()), ContainsSubstring("3 operations"));
      REQUIRE(answers[2].status == answers[1].status);
      store->close();
    }
    const auto store = place.open(kTestLimits);
    REQUIRE(store->recover_lease(sink).ok());
    REQUIRE(load_rows(*store) == Strings{"H:before=v@1"});
    store->close();
  });
}

TEST_CASE("destroying a store without close drops queued commits and does not call the sink") {
  for (const StorePlace& place : {memory_place(MemoryStoreOptions::Mode::kPump),
                                  leveldb_place(LevelDbOptions::Committer::kPump)}) {
    INFO("store: " << place.kind);
    RecordingSink sink;
    Request request;
    request.batch.insert(Space::kProcedure, "queued", "v");
    {
      const auto store = place.open(kTestLimits);
      REQUIRE(store->recover_lease(sink).ok());
      store->commit(request);
    }
    REQUIRE(sink.answers().empty());
    const auto store = place.open(kTestLimits);
    REQUIRE(store->recover_lease(sink).ok());
    REQUIRE(load_rows(*store).empty());
    store->close();
  }
}

TEST_CASE("reading a LevelDB store that is closed fails with a message instead of crashing") {
  RecordingSink sink;
  const StorePlace place = leveldb_place(LevelDbOptions::Committer::kThread);
  const auto store = place.open(kTestLimits);
  REQUIRE(store->recover_lease(sink).ok());
  store->close();

  REQUIRE(store->get(Space::kHost, "a").status().code() == StatusCode::kStopping);
  REQUIRE(visit_all(*store, [](const StoredRow&) { return Status(); }).code() ==
          StatusCode::kStopping);
}

}  // namespace
TEST_CASE("queued commits are divided into units as large as the limits allow") {
  const bool by_bytes = GENERATE(false, true);
  constexpr std::size_t kRows = 3;
  std::deque<Request> requests;
  for (int i = 0; i < 7; ++i) {
    RowBatch& batch = requests.emplace_back().batch;
    const std::size_t rows = i == 4 ? 5 * kRows : kRows;  // one is too large for any unit
    for (std::size_t row = 0; row < rows; ++row) {
      batch.put(Space::kHost, std::to_string(i) + "/" + std::to_string(row), "value");
    }
  }
  const RowBatch& small = requests.front().batch;
  CrashEnv env;
  LevelDbOptions options{.committer = LevelDbOptions::Committer::kPump,
                         .env = env.as_env(),
                         .segment_files = env.as_segment_files(),
                         .sync_directory = env.directory_sync()};
  options.unit_size = {.batch_operations = by_bytes ? SIZE_MAX : 2 * small.operations() + 1,
                       .batch_bytes = by_bytes ? 2 * small.bytes() + 1 : SIZE_MAX};
  LevelDbProcedureStore store("store", options);
  RecordingSink sink;
  REQUIRE(store.recover_lease(sink).ok());

  CommitList list;
  for (Request& request : requests) list.push_back(request);
  store.commit_all(list);
  store.pump();

  CHECK(sink.answers().size() == requests.size());
  CHECK(sink.lists() == 4);  // 0 1, 2 3, 4 alone, 5 6
  for (const RecordingSink::Answer& answer : sink.answers()) CHECK(answer.status.ok());
  store.close();
}

}  // namespace pv2::testing::store_conformance_test
