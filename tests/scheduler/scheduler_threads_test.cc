// SPDX-License-Identifier: Apache-2.0
//
// Schedulers under threads: no wake is lost, no worker is signalled without work, and exclusive
// work runs alone. The threads finish when the work does, so nothing here depends on how long
// anything takes.

#include <pv2/scheduler/master_procedure_scheduler.h>
#include <pv2/scheduler/simple_procedure_scheduler.h>

#include <array>
#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "support/catch.h"
#include "test_entry.h"

namespace pv2::testing::scheduler_threads_test {

using namespace pv2::test;

namespace {

// Longer than any test waits: a lost wake-up shows as a test that hangs.
constexpr std::chrono::hours kForEver{1};

struct Simple {
  using Type = SimpleProcedureScheduler;
};
struct Master {
  using Type = MasterProcedureScheduler;
};

// Workers that do `step` with whatever they poll, and settle it as `step` says, or leave it parked
// if `step` says nothing, until told to stop.
class Workers {
 public:
  template <class Step>
  Workers(ProcedureScheduler& scheduler, int count, std::size_t run_max, Step step)
      : scheduler_(scheduler) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, run_max, step] {
        std::vector<SchedulerEntry*> run(run_max);
        while (const std::size_t taken = scheduler_.poll(run, kForEver)) {
          EntryList batch;
          for (std::size_t at = 0; at < taken; ++at) {
            const std::optional<Disposition> disposition = step(*run[at]);
            if (disposition) batch.push_back(*run[at], *disposition);
          }
          scheduler_.settle(std::move(batch));
        }
      });
    }
  }
  ~Workers() {
    scheduler_.stop();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  ProcedureScheduler& scheduler_;
  std::vector<std::thread> threads_;
};

void wait_until_sleeping(const LockingScheduler& scheduler, std::size_t workers) {
  while (scheduler.counts().sleeping != workers) std::this_thread::yield();
}

void wait_until(const std::atomic<int>& counter, int value) {
  for (int seen = counter.load(); seen != value; seen = counter.load()) counter.wait(seen);
}

// A step for Workers.
auto counts_and_completes(std::atomic<int>& finished) {
  return [&finished](SchedulerEntry&) {
    ++finished;
    finished.notify_all();
    return Disposition::kComplete;
  };
}

// Makes `size` entries without locks, with the ids that follow those of `entries`, to be queued.
EntryList batch_of(std::size_t size, std::vector<std::unique_ptr<TestEntry>>& entries) {
  EntryList batch;
  for (std::size_t i = 0; i < size; ++i) {
    entries.push_back(std::make_unique<TestEntry>(entries.size() + 1));
    batch.push_back(*entries.back(), Disposition::kBack);
  }
  return batch;
}

}  // namespace

TEMPLATE_TEST_CASE(
    "exclusive work of eight threads never overlaps, and shared work never overlaps a writer",
    "[row109][row110]", Simple, Master) {
  constexpr int kKeys = 4;
  constexpr int kEntries = 64;
  constexpr int kTurns = 50;
  SystemClock clock;
  typename TestType::Type scheduler(clock);
  struct Guarded {
    std::atomic<int> readers{0};
    std::atomic<int> writers{0};
    int plain = 0;  // for the thread sanitizer: written under the exclusive lock alone
  };
  std::array<Guarded, kKeys> guarded;
  std::array<int, kEntries + 1> turns{};  // each touched only by the worker that has the entry
  std::atomic<int> finished{0};
  std::atomic<bool> overlap{false};
  std::vector<std::unique_ptr<TestEntry>> entries;
  for (std::uint64_t i = 1; i <= kEntries; ++i) {
    // Half of them on four contended tables, half on one table each.
    const std::string name =
        i % 2 == 0 ? "own" + std::to_string(i) : "t" + std::to_string(i / 2 % kKeys);
    entries.push_back(
        std::make_unique<TestEntry>(i, table(name, i % 3 == 0 ? kShared : kExclusive)));
  }
  {
    Workers workers(scheduler, 8, 4, [&](SchedulerEntry& entry) {
      const std::uint64_t number = entry.id.value;
      if (number % 2 != 0) {
        Guarded& g = guarded[number / 2 % kKeys];
        if (number % 3 == 0) {
          ++g.readers;
          if (g.writers != 0) overlap = true;
          --g.readers;
        } else {
          if (++g.writers != 1 || g.readers != 0) overlap = true;
          ++g.plain;
          --g.writers;
        }
      }
      if (++turns[number] < kTurns) {
        return number % 5 == 0 ? Disposition::kFront : Disposition::kBackUnlock;
      }
      if (++finished == kEntries) finished.notify_all();
      return Disposition::kComplete;
    });
    for (auto& entry : entries) submit(scheduler, *entry);
    wait_until(finished, kEntries);
  }

  CHECK_FALSE(overlap);
  CHECK(scheduler.locks().empty());
  CHECK(scheduler.counts().queued == 0);
}

TEMPLATE_TEST_CASE(
    "five hundred parks and wakes on four threads lose no wake, one by one or in batches",
    "[row64][row65]", Simple, Master) {
  const int batch_size = GENERATE(1, 10);
  constexpr int kCycles = 500;
  SystemClock clock;
  typename TestType::Type scheduler(clock);
  std::atomic<int> ran{0};
  std::vector<std::unique_ptr<TestEntry>> entries;
  for (int i = 0; i < batch_size; ++i) {
    entries.push_back(std::make_unique<TestEntry>(static_cast<std::uint64_t>(i) + 1,
                                                  server("s" + std::to_string(i))));
  }
  Mutex parked_mutex;
  std::vector<SchedulerEntry*> parked;
  std::atomic<int> parked_count{0};
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      std::array<SchedulerEntry*, 1> run{};
      while (scheduler.poll(run, kForEver) != 0) {
        ++ran;
        MutexLock lock(parked_mutex);
        parked.push_back(run[0]);
        ++parked_count;
        parked_count.notify_all();
      }
    });
  }
  for (auto& entry : entries) submit(scheduler, *entry);

  for (int cycle = 1; cycle <= kCycles; ++cycle) {
    wait_until(parked_count, batch_size);
    if (cycle == kCycles) break;
    EntryList batch;
    {
      MutexLock lock(parked_mutex);
      for (SchedulerEntry* entry : parked) batch.push_back(*entry, Disposition::kFront);
      parked.clear();
      parked_count = 0;
    }
    scheduler.settle(std::move(batch));
  }
  scheduler.stop();
  for (std::thread& worker : workers) worker.join();

  CHECK(ran == kCycles * batch_size);
}

TEMPLATE_TEST_CASE("releasing a key with three ready readers signals three of the sleeping workers",
                   "[X16]", Simple, Master) {
  SystemClock clock;
  typename TestType::Type scheduler(clock);
  TestEntry writer(1, table("t", kExclusive));
  std::vector<std::unique_ptr<TestEntry>> readers;
  submit(scheduler, writer);
  REQUIRE(poll(scheduler) == &writer);
  for (std::uint64_t id = 2; id <= 4; ++id) {
    readers.push_back(std::make_unique<TestEntry>(id, table("t", kShared)));
    submit(scheduler, *readers.back());
  }
  std::atomic<int> served{0};
  std::atomic<int> finished{0};
  {
    // Each reader waits for the two others: only three workers at once can finish them.
    Workers workers(scheduler, 5, 1, [&](SchedulerEntry&) {
      if (++served == 3) served.notify_all();
      wait_until(served, 3);
      ++finished;
      finished.notify_all();
      return Disposition::kComplete;
    });
    wait_until_sleeping(scheduler, 5);
    const std::uint64_t before = scheduler.counts().wakes;

    complete(scheduler, writer);

    wait_until(finished, 3);
    CHECK(scheduler.counts().wakes - before == 3);
  }
}

TEMPLATE_TEST_CASE("a nudge ends one waiting poll, or else the next one that would wait", "",
                   Simple, Master) {
  SystemClock clock;
  typename TestType::Type scheduler(clock);
  std::array<SchedulerEntry*, 4> run{};
  scheduler.nudge();
  scheduler.nudge();  // the first is not consumed yet, so the two are one
  CHECK(scheduler.poll(run, kForEver) == 0);

  std::atomic<int> returned{0};
  std::vector<std::thread> workers;
  for (int i = 0; i < 2; ++i) {
    workers.emplace_back([&] {
      std::array<SchedulerEntry*, 4> mine{};
      CHECK(scheduler.poll(mine, kForEver) == 0);
      ++returned;
      returned.notify_all();
    });
  }
  wait_until_sleeping(scheduler, 2);
  scheduler.nudge();
  wait_until(returned, 1);
  CHECK(scheduler.counts().sleeping == 1);
  scheduler.stop();
  for (std::thread& worker : workers) worker.join();
}

TEMPLATE_TEST_CASE("a poll of the longest patience sleeps until there is work", "", Simple,
                   Master) {
  SystemClock clock;
  typename TestType::Type scheduler(clock);
  std::vector<std::unique_ptr<TestEntry>> entries;
  std::atomic<bool> returned{false};
  std::size_t taken = 0;
  std::thread worker([&] {
    std::array<SchedulerEntry*, 4> run{};
    taken = scheduler.poll(run, std::chrono::milliseconds::max());
    returned = true;
  });
  while (scheduler.counts().sleeping == 0 && !returned) std::this_thread::yield();

  scheduler.settle(batch_of(1, entries));

  worker.join();
  CHECK(taken == 1);
  if (taken == 1) complete(scheduler, *entries.front());
}

TEMPLATE_TEST_CASE("a nudge that woke a worker which found an entry does not swallow the next one",
                   "", Simple, Master) {
  SystemClock clock;
  typename TestType::Type scheduler(clock);
  std::vector<std::unique_ptr<TestEntry>> entries;
  std::latch inside(1);
  std::latch release(1);
  {
    Workers workers(scheduler, 2, 1, [&](SchedulerEntry&) {
      inside.count_down();
      release.wait();
      return Disposition::kComplete;
    });
    wait_until_sleeping(scheduler, 2);
    CHECK(scheduler.settle(batch_of(1, entries), {.own = 1}) == 1);  // wakes nobody
    scheduler.nudge();
    inside.wait();
    CHECK(scheduler.counts().sleeping == 1);

    scheduler.nudge();

    wait_until_sleeping(scheduler, 0);
    release.count_down();
  }
}

TEMPLATE_TEST_CASE("a poll leaves other waiting workers their share", "", Simple, Master) {
  SystemClock clock;
  typename TestType::Type scheduler(clock);
  std::vector<std::unique_ptr<TestEntry>> entries;
  EntryList batch;
  for (std::uint64_t id = 1; id <= 10; ++id) {
    entries.push_back(std::make_unique<TestEntry>(id));
    REQUIRE(scheduler.admit(*entries.back()));
    batch.push_back(*entries.back(), Disposition::kBack);
  }
  std::array<std::size_t, 2> taken{};
  std::vector<std::thread> workers;
  for (std::size_t& mine : taken) {
    workers.emplace_back([&] {
      std::array<SchedulerEntry*, 16> run{};
      mine = scheduler.poll(run, kForEver);
    });
  }
  wait_until_sleeping(scheduler, 2);

  scheduler.settle(std::move(batch));

  for (std::thread& worker : workers) worker.join();
  CHECK(taken == std::array<std::size_t, 2>{5, 5});
  EntryList ended;
  for (auto& entry : entries) ended.push_back(*entry, Disposition::kComplete);
  scheduler.settle(std::move(ended));
}

TEMPLATE_TEST_CASE(
    "more work than sleepers wakes them all, and no signal is sent when no worker sleeps", "[X16]",
    Simple, Master) {
  SystemClock clock;
  typename TestType::Type scheduler(clock);
  TestEntry awake(1000);
  submit(scheduler, awake);
  CHECK(scheduler.counts().wakes == 0);
  REQUIRE(poll(scheduler) == &awake);

  std::vector<std::unique_ptr<TestEntry>> entries;
  std::atomic<int> finished{0};
  {
    Workers workers(scheduler, 2, 1, counts_and_completes(finished));
    wait_until_sleeping(scheduler, 2);

    scheduler.settle(batch_of(5, entries));

    wait_until(finished, 5);
    CHECK(scheduler.counts().wakes == 2);
  }
}

TEMPLATE_TEST_CASE("a worker that polls next takes one entry itself, and the rest wakes others", "",
                   Simple, Master) {
  SystemClock clock;
  typename TestType::Type scheduler(clock);
  std::vector<std::unique_ptr<TestEntry>> entries;
  std::atomic<int> finished{0};
  {
    Workers workers(scheduler, 2, 1, counts_and_completes(finished));
    wait_until_sleeping(scheduler, 2);

    scheduler.settle(batch_of(1, entries), {.own = 1});
    CHECK(scheduler.counts().wakes == 0);
    CHECK(scheduler.counts().runnable == 1);
    SchedulerEntry* const mine = poll(scheduler);
    REQUIRE(mine == entries.front().get());
    complete(scheduler, *mine);
    CHECK(scheduler.counts().wakes == 0);

    // A batch that makes nothing runnable wakes nobody.
    TestEntry parked(1000);
    EntryList nothing;
    nothing.push_back(parked, Disposition::kParkUnlock);
    scheduler.settle(std::move(nothing), {.own = 1});
    CHECK(scheduler.counts().wakes == 0);
    // This thread does not poll: the worker that is woken sees that, and wakes the other one.
    scheduler.settle(batch_of(2, entries), {.own = 1});
    wait_until(finished, 2);
    wait_until_sleeping(scheduler, 2);

    const std::uint64_t before = scheduler.counts().wakes;
    scheduler.settle(batch_of(1, entries), {.own = 1});
    CHECK(scheduler.counts().wakes == before);
    scheduler.wake_for_ready();  // it does not poll next after all
    wait_until(finished, 3);
    wait_until_sleeping(scheduler, 2);
    scheduler.wake_for_ready();  // nothing can run
    CHECK(scheduler.counts().wakes == before + 1);
    complete(scheduler, parked);
  }
}

TEMPLATE_TEST_CASE("a worker that polls next is left as many entries as it asks for", "", Simple,
                   Master) {
  SystemClock clock;
  typename TestType::Type scheduler(clock);
  std::vector<std::unique_ptr<TestEntry>> entries;
  std::atomic<int> finished{0};
  std::array<SchedulerEntry*, 8> mine{};
  const auto poll_own = [&](std::size_t own) {
    return std::span(mine).first(scheduler.poll(mine, std::chrono::milliseconds(0), {.own = own}));
  };
  {
    Workers workers(scheduler, 2, 1, counts_and_completes(finished));
    wait_until_sleeping(scheduler, 2);

    CHECK(scheduler.settle(batch_of(3, entries), {.own = 4}) == 3);
    CHECK(scheduler.settle(EntryList(), {.own = 4}) == 0);
    CHECK(scheduler.counts().wakes == 0);
    const auto all = poll_own(4);  // without `own` two sleepers would leave it one
    CHECK(all.size() == 3);
    for (SchedulerEntry* const entry : all) complete(scheduler, *entry);
    CHECK(scheduler.counts().wakes == 0);

    CHECK(scheduler.settle(batch_of(5, entries), {.own = 4}) == 4);  // the fifth wakes a worker
    wait_until(finished, 5);                                         // which wakes the other one
    wait_until_sleeping(scheduler, 2);

    CHECK(scheduler.settle(batch_of(6, entries), {.own = 6}) == 6);
    const auto two = poll_own(1);  // a share is more than `own`
    CHECK(two.size() == 2);
    for (SchedulerEntry* const entry : two) complete(scheduler, *entry);
    wait_until(finished, 9);
  }
}

TEMPLATE_TEST_CASE("a poll that leaves an entry for which nobody is on its way wakes a worker", "",
                   Simple, Master) {
  SystemClock clock;
  typename TestType::Type scheduler(clock);
  std::vector<std::unique_ptr<TestEntry>> entries;
  std::atomic<int> finished{0};
  {
    Workers workers(scheduler, 1, 1, counts_and_completes(finished));
    wait_until_sleeping(scheduler, 1);
    for (int caller = 0; caller < 2; ++caller) {
      scheduler.settle(batch_of(1, entries), {.own = 1});
    }
    CHECK(scheduler.counts().wakes == 0);

    SchedulerEntry* const mine = poll(scheduler);  // takes one of the two

    CHECK(scheduler.counts().wakes == 1);
    complete(scheduler, *mine);
    wait_until(finished, 1);
  }
}

TEMPLATE_TEST_CASE("two operations on one peer with children both finish", "[row115]", Simple,
                   Master) {
  SystemClock clock;
  typename TestType::Type scheduler(clock);
  TestEntry first(1, peer("p")), second(2, peer("p"));
  TestEntry child_of_first(3, peer("p"), &first), child_of_second(4, peer("p"), &second);
  std::array<std::atomic<int>, 5> turns{};
  std::atomic<int> finished{0};
  {
    Workers workers(scheduler, 4, 2, [&](SchedulerEntry& entry) -> std::optional<Disposition> {
      const bool is_parent = entry.parent() == nullptr;
      if (is_parent && ++turns[entry.id.value] == 1) return std::nullopt;
      ++finished;
      finished.notify_all();
      return Disposition::kComplete;
    });
    submit(scheduler, {&first, &second});
    // The engine publishes a child after its parent's step; here the test does, for both in turn.
    for (auto [parent, child] : {std::pair{&first, &child_of_first}, {&second, &child_of_second}}) {
      for (int seen = turns[parent->id.value]; seen == 0; seen = turns[parent->id.value]) {
        std::this_thread::yield();
      }
      const int before = finished;
      submit(scheduler, *child);
      wait_until(finished, before + 1);
      wait_until_sleeping(scheduler, 4);  // so the worker that ran the parent has parked it
      settle(scheduler, *parent, Disposition::kFront);
      wait_until(finished, before + 2);
    }
  }

  CHECK(scheduler.locks().empty());
}

}  // namespace pv2::testing::scheduler_threads_test
