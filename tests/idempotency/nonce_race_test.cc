// SPDX-License-Identifier: Apache-2.0
//
// N-11: many requests with one nonce race, and the first attempts fail. There is never more than
// one owner, and at most one attempt succeeds. The same race against the algorithm as it is printed
// in the literature, the control, shows that the test can see what it is there to see.

#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "pv2/idempotency/server_nonce_manager.h"
#include "pv2/testing/seeds.h"
#include "support/catch.h"

namespace pv2::testing::nonce_race_test {
namespace {

constexpr int kThreads = 6;
constexpr int kFailures = 3;

/// HBase's startOperation() and endOperation(), as printed: a request that finds the entry of
/// another one waits at that entry. Once that is ended, it may be in the table no longer.
class PrintedAlgorithm {
 public:
  /// Runs `operation`, unless another request has succeeded. `operation` returns whether it did.
  /// False: this request is to be sent again.
  bool request(std::uint64_t nonce, const std::function<bool()>& operation) {
    const auto mine = std::make_shared<Entry>();
    std::shared_ptr<Entry> old;
    {
      std::lock_guard lock(mutex_);
      const auto [at, is_new] = entries_.try_emplace(nonce, mine);
      if (!is_new) old = at->second;
    }
    if (old) {
      std::unique_lock lock(old->mutex);
      while (old->state == State::kWait) old->ended.wait(lock);
      if (old->state == State::kDontProceed) return true;
    }
    const bool succeeded = operation();
    end(nonce, succeeded);
    return succeeded;
  }

 private:
  enum class State { kWait, kProceed, kDontProceed };
  struct Entry {
    std::mutex mutex;
    std::condition_variable ended;
    State state = State::kWait;
  };

  void end(std::uint64_t nonce, bool succeeded) {
    std::shared_ptr<Entry> entry;
    {
      std::lock_guard lock(mutex_);
      const auto at = entries_.find(nonce);
      if (at == entries_.end()) return;  // printed as an assertion
      entry = at->second;
    }
    std::lock_guard lock(entry->mutex);
    entry->state = succeeded ? State::kDontProceed : State::kProceed;
    if (!succeeded) {
      std::lock_guard table(mutex_);
      entries_.erase(nonce);
    }
    entry->ended.notify_all();
  }

  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Entry>> entries_;
};

class OurManager {
 public:
  bool request(std::uint64_t nonce, const std::function<bool()>& operation) {
    auto answer = manager_.begin({.nonce = {1, nonce}, .fingerprint = {}});
    if (!answer.ok() || !answer->runs()) return answer.ok();
    const bool succeeded = operation();
    succeeded ? answer->owner.succeed("") : answer->owner.fail();
    return succeeded;
  }

 private:
  ServerNonceManager manager_;
};

struct Race {
  std::uint64_t keys = 0;           ///< How many were raced for.
  std::uint64_t two_owners = 0;     ///< Keys that two requests ran at once.
  std::uint64_t two_successes = 0;  ///< Keys whose operation was done twice.
};

/// Races for `keys` nonces one after the other, or until something went wrong.
template <class Manager>
Race race(std::uint64_t keys) {
  Manager manager;
  Race race;
  std::atomic<int> running{0}, attempts{0}, successes{0};
  std::atomic<bool> overlap{false};
  std::atomic<bool> over{false};
  const auto next_key = [&]() noexcept {
    race.two_owners += overlap.exchange(false) ? 1 : 0;
    race.two_successes += successes.exchange(0) > 1 ? 1 : 0;
    attempts = 0;
    if (race.two_owners + race.two_successes != 0 || ++race.keys == keys) over = true;
  };
  std::barrier turnstile(kThreads, next_key);
  const auto operation = [&] {
    if (running.fetch_add(1) != 0) overlap = true;
    const bool succeeds = attempts.fetch_add(1) >= kFailures;
    if (succeeds) ++successes;
    running.fetch_sub(1);
    return succeeds;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t nonce = 1; !over; ++nonce) {
        while (!manager.request(nonce, operation)) {
        }
        turnstile.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return race;
}

}  // namespace

TEST_CASE("N-11: however requests race, an operation has one owner and is done once", "[race]") {
  const Race ours = race<OurManager>(seeds_from_environment(20'000).count);
  CHECK(ours.two_owners == 0);
  CHECK(ours.two_successes == 0);
}

TEST_CASE("N-11: the algorithm as it is printed does an operation twice", "[race]") {
  const Race printed = race<PrintedAlgorithm>(1'000'000);
  CHECK(printed.two_owners + printed.two_successes != 0);
  WARN("the printed algorithm failed at key " << printed.keys);
}

}  // namespace pv2::testing::nonce_race_test
