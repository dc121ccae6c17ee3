// SPDX-License-Identifier: Apache-2.0
//
// queue_all(), write_queued() and wake_writer() of the stores that have a thread: a thread without
// other work writes its own requests. No request is forgotten, whoever writes, and two threads
// never write at once.

#include <atomic>
#include <deque>
#include <functional>
#include <latch>
#include <thread>

#include "store_fixture.h"
#include "support/catch.h"
#include "support/in_child.h"

namespace pv2::testing::write_queued_test {
namespace {

void on_every_store_with_a_thread(const std::function<void(const StorePlace&)>& body) {
  for (const StorePlace& place : {memory_place(MemoryStoreOptions::Mode::kThread),
                                  leveldb_place(LevelDbOptions::Committer::kThread),
                                  leveldb_place(LevelDbOptions::Committer::kThread, SmallLog{})}) {
    INFO("store: " << place.kind);
    body(place);
  }
}

void fill(Request& request, int number) {
  request.number = number;
  request.batch.clear();
  request.batch.put(Space::kHost, std::to_string(number), "value");
}

CommitAnswer queue(ProcedureStore& store, Request& request) {
  CommitList list;
  list.push_back(request);
  return store.queue_all(list);
}

// Commits with write_queued() until a call of it has written, as the store's thread may be awake at
// first. Returns how many requests it took.
int write_until_written(ProcedureStore& store, RecordingSink& sink, std::deque<Request>& requests) {
  for (int number = 1;; ++number) {
    fill(requests.emplace_back(), number);
    REQUIRE(queue(store, requests.back()) == CommitAnswer::kQueued);
    const Written written = store.write_queued();
    sink.wait_for(requests.size(), store);
    if (written != Written::kNothing) return number;
  }
}

TEST_CASE("a thread writes what it has queued, and the sink is called on that thread") {
  on_every_store_with_a_thread([](const StorePlace& place) {
    RecordingSink sink;
    std::thread::id last_writer;
    sink.then = [&](Request&) { last_writer = std::this_thread::get_id(); };
    const auto store = place.open(kTestLimits);
    REQUIRE(store->recover_lease(sink).ok());
    std::deque<Request> requests;

    const int count = write_until_written(*store, sink, requests);

    CHECK(last_writer == std::this_thread::get_id());
    CHECK(sink.answers().back().sequence.value == static_cast<std::uint64_t>(count));
    CHECK(store->get(Space::kHost, std::to_string(count)).value().has_value());
    CHECK(store->write_queued() == Written::kNothing);  // nothing is queued
    store->close();
  });
}

TEST_CASE("the store writes what was queued when it is told to, or when it is closed") {
  on_every_store_with_a_thread([](const StorePlace& place) {
    RecordingSink sink;
    const auto store = place.open(kTestLimits);
    REQUIRE(store->recover_lease(sink).ok());
    std::deque<Request> requests;
    write_until_written(*store, sink, requests);  // its thread sleeps

    fill(requests.emplace_back(), 1'000);
    REQUIRE(queue(*store, requests.back()) == CommitAnswer::kQueued);
    store->wake_writer();
    sink.wait_for(requests.size(), *store);
    store->wake_writer();  // nothing is queued

    fill(requests.emplace_back(), 1'001);
    REQUIRE(queue(*store, requests.back()) == CommitAnswer::kQueued);
    store->close();

    REQUIRE(sink.answers().size() == requests.size());
    REQUIRE(sink.answers().back().status.ok());
    CommitList late;
    late.push_back(requests.back());
    REQUIRE(store->queue_all(late) == CommitAnswer::kDurable);
    REQUIRE(requests.back().status.code() == StatusCode::kStopping);
    REQUIRE(store->write_queued() == Written::kNothing);
  });
}

// A thread that is in the sink, from write_queued(), until it is released.
struct HeldWriter {
  RecordingSink sink;
  std::unique_ptr<ProcedureStore> store;
  std::deque<Request> requests;
  std::latch inside{1};
  std::latch release{1};
  std::thread thread;

  explicit HeldWriter(const StorePlace& place) : store(place.open(kTestLimits)) {
    sink.then = [this](Request& request) {
      if (request.number != 0) return;
      inside.count_down();
      release.wait();
    };
    REQUIRE(store->recover_lease(sink).ok());
    write_until_written(*store, sink, requests);
    fill(requests.emplace_back(), 0);
    thread = std::thread([this] {
      queue(*store, requests.back());
      written = store->write_queued();
      if (written == Written::kSome) store->wake_writer();
    });
    inside.wait();
  }
  std::atomic<Written> written = Written::kNothing;
};

TEST_CASE("what others commit while a thread writes is written when it has written") {
  on_every_store_with_a_thread([](const StorePlace& place) {
    HeldWriter held(place);
    std::deque<Request> others(3);
    for (int i = 0; i < 3; ++i) fill(others[static_cast<std::size_t>(i)], 2'000 + i);

    held.store->commit(others[0]);
    queue(*held.store, others[1]);
    CHECK(held.store->write_queued() == Written::kNothing);  // another thread writes
    queue(*held.store, others[2]);
    held.store->wake_writer();
    const std::size_t before = held.sink.answers().size();
    held.release.count_down();
    held.thread.join();
    const auto answers = held.sink.wait_for(held.requests.size() + others.size(), *held.store);

    CHECK(held.written == Written::kSome);
    CHECK(before + 4 == answers.size());  // nothing came back while the sink was held
    for (std::size_t i = 0; i < answers.size(); ++i) REQUIRE(answers[i].sequence.value == i + 1);
    held.store->close();
  });
}

// A thread has written a request, in whose sink `count` others were committed.
struct Followed {
  RecordingSink sink;
  std::unique_ptr<ProcedureStore> store;
  std::deque<Request> requests;
  std::deque<Request> others;
  std::vector<std::thread::id> writers;  // of the request and of the others
  Written written = Written::kNothing;

  Followed(const StorePlace& place, std::size_t count)
      : store(place.open(kTestLimits)), others(count) {
    sink.then = [this](Request& request) {
      if (request.number < 5'000) return;
      writers.push_back(std::this_thread::get_id());
      if (request.number != 5'000) return;
      for (Request& other : others) {
        fill(other, 5'001);
        store->commit(other);
      }
    };
    REQUIRE(store->recover_lease(sink).ok());
    write_until_written(*store, sink, requests);  // the store's thread sleeps
    fill(requests.emplace_back(), 5'000);
    REQUIRE(queue(*store, requests.back()) == CommitAnswer::kQueued);
    written = store->write_queued();
  }
};

TEST_CASE("a thread that is told that more is queued may write that, too") {
  on_every_store_with_a_thread([](const StorePlace& place) {
    Followed followed(place, 64);

    CHECK(followed.written == Written::kSome);
    CHECK(followed.store->write_queued() == Written::kAll);

    CHECK(followed.writers == std::vector(65, std::this_thread::get_id()));
    CHECK(followed.store->write_queued() == Written::kNothing);
    followed.store->close();
  });
}

TEST_CASE("the store writes what is queued after a thread has written, if it is much") {
  on_every_store_with_a_thread([](const StorePlace& place) {
    Followed followed(place, 65);

    CHECK(followed.written == Written::kAll);

    const std::size_t all = followed.requests.size() + followed.others.size();
    CHECK(followed.sink.wait_for(all, *followed.store).back().status.ok());
    followed.store->close();
  });
}

TEST_CASE("a store that is closed while a thread writes returns everything before close returns") {
  on_every_store_with_a_thread([](const StorePlace& place) {
    HeldWriter held(place);
    Request other;
    fill(other, 3'000);
    held.store->commit(other);
    std::size_t at_close = 0;
    std::atomic<bool> closed = false;
    std::thread closer([&] {
      held.store->close();
      at_close = held.sink.answers().size();
      closed = true;
    });
    // Time enough for a close that does not wait.
    for (int looks = 0; looks < 50'000 && !closed; ++looks) std::this_thread::yield();
    CHECK_FALSE(closed);
    held.release.count_down();
    closer.join();
    held.thread.join();

    REQUIRE(at_close == held.requests.size() + 1);
    REQUIRE(other.status.ok());
  });
}

TEST_CASE("requests of threads that write and threads that do not come back once, in stamp order") {
  on_every_store_with_a_thread([](const StorePlace& place) {
    RecordingSink sink;
    std::atomic<int> inside = 0;
    std::atomic<bool> two_at_once = false;
    sink.then = [&](Request&) {
      if (inside.fetch_add(1) != 0) two_at_once = true;
      inside.fetch_sub(1);
    };
    const auto store = place.open(kTestLimits);
    REQUIRE(store->recover_lease(sink).ok());
    std::deque<Request> requests(800);
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        for (std::size_t i = thread; i < requests.size(); i += 4) {
          fill(requests[i], static_cast<int>(i));
          switch ((i / 4 + thread) % 3) {
            case 0:
              store->commit(requests[i]);
              break;
            case 1:
              queue(*store, requests[i]);
              store->wake_writer();
              break;
            default:
              queue(*store, requests[i]);
              if (store->write_queued() == Written::kSome) store->wake_writer();
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const auto answers = sink.wait_for(requests.size(), *store);

    REQUIRE(answers.size() == requests.size());
    for (std::size_t i = 0; i < answers.size(); ++i) REQUIRE(answers[i].sequence.value == i + 1);
    REQUIRE_FALSE(two_at_once);
    store->close();
    REQUIRE(sink.answers().size() == requests.size());
  });
}

TEST_CASE("a store that is pumped does nothing when its sink pumps it again") {
  for (const StorePlace& place : {memory_place(MemoryStoreOptions::Mode::kPump),
                                  leveldb_place(LevelDbOptions::Committer::kPump)}) {
    INFO("store: " << place.kind);
    RecordingSink sink;
    const auto store = place.open(kTestLimits);
    Request following;
    bool pumped = false;
    sink.then = [&](Request& request) {
      if (request.number != 1) return;
      fill(following, 2);
      store->commit(following);
      pumped = store->pump();
    };
    REQUIRE(store->recover_lease(sink).ok());
    Request first;
    fill(first, 1);
    store->commit(first);

    CHECK(store->pump());

    CHECK_FALSE(pumped);
    CHECK(sink.answers().size() == 1);
    CHECK(store->pump());
    CHECK(sink.answers().size() == 2);
    store->close();
  }
}

TEST_CASE("a store is not closed from within its sink, whoever calls the sink") {
  for (const StorePlace& place : {memory_place(MemoryStoreOptions::Mode::kThread),
                                  memory_place(MemoryStoreOptions::Mode::kPump),
                                  leveldb_place(LevelDbOptions::Committer::kThread)}) {
    INFO("store: " << place.kind);
    const auto [said, ended] = in_child([&] {
      RecordingSink sink;
      const auto store = place.open(kTestLimits);
      if (!store->recover_lease(sink).ok()) return;
      std::deque<Request> requests;
      for (int number = 1;; ++number) {
        if (number == 2) sink.then = [&](Request&) { store->close(); };
        fill(requests.emplace_back(), number);
        queue(*store, requests.back());
        if (store->pump() || store->write_queued() != Written::kNothing) {
          if (number >= 2) return;
          continue;
        }
        sink.wait_for(requests.size(), *store);
      }
    });
    CHECK(ended);
    CHECK(said.find("a store is not closed from within its sink") != std::string::npos);
  }
}

}  // namespace
}  // namespace pv2::testing::write_queued_test
