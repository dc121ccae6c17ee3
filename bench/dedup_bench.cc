// SPDX-License-Identifier: Apache-2.0
//
// dedup_bench: what it costs to do an operation once. In memory: a new nonce, a duplicate, and a
// request of a session, next to a hash map with a mutex, which is the least that anybody could do.
// On LevelDB: increments whose nonce is saved in their batch, by 1 and by 64 threads, next to the
// same increments without a nonce.
//
//     dedup_bench [--quick] ...

#include <fmt/format.h>
#include <pv2/base/mutex.h>
#include <pv2/idempotency/client_sessions.h>
#include <pv2/idempotency/fingerprint.h>
#include <pv2/idempotency/server_nonce_manager.h>
#include <pv2/store/leveldb_procedure_store.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/machine.h"
#include "harness/options.h"
#include "harness/raw_sync.h"
#include "harness/rounds.h"
#include "harness/work_folder.h"

namespace pv2::bench {
namespace {

constexpr std::uint64_t kOperations = 200'000;

/// Nanoseconds of one call of `work`, of many.
template <class Work>
double nanoseconds(Work work) {
  const auto begin = BenchClock::now();
  for (std::uint64_t i = 1; i <= kOperations; ++i) work(i);
  const std::chrono::duration<double, std::nano> passed = BenchClock::now() - begin;
  return passed.count() / static_cast<double>(kOperations);
}

/// Keeps nothing: its answers come at once.
class NoRows final : public RowLog {
 public:
  void commit(RowBatch /*batch*/, std::function<void(Status)> done) override { done(Status()); }
  Status scan(std::string_view /*prefix*/, const RowVisitor& /*visit*/) override {
    return Status();
  }
};

class DedupBench {
 public:
  explicit DedupBench(Options options)
      : options_(std::move(options)), folder_(options_.data), raw_(folder_.fresh("raw-sync")) {}

  void run() {
    for (unsigned round = 0; round < options_.runs; ++round) {
      progress(fmt::format("deduplication, round {} of {}", round + 1, options_.runs));
      measure_memory();
      for (const unsigned threads : {1U, 64U}) measure_durable(threads);
    }
    ResultRow memory("dedup");
    memory.set("store", "none");
    memory_.fill(memory, "new_nonce_ns");
    memory.print();
    for (const auto& [threads, rounds] : durable_) {
      ResultRow row("dedup");
      row.set("store", "leveldb").set("in_flight", threads);
      rounds.fill(row, "with_nonce_per_s");
      row.print();
    }
  }

 private:
  void measure_memory() {
    const UsageMeter meter;
    const Hash128 fingerprint = fingerprint_of({"increment", "counter", "1"});
    Mutex mutex;
    std::unordered_map<Nonce, std::string> map;
    const double least = nanoseconds([&](std::uint64_t i) {
      MutexLock lock(mutex);
      map.emplace(Nonce{1, i}, "7");
    });
    ServerNonceManager nonces;
    const double new_nonce = nanoseconds([&](std::uint64_t i) {
      auto answer = nonces.begin({.nonce = {1, i}, .fingerprint = fingerprint});
      answer->owner.succeed("7");
    });
    const double duplicate = nanoseconds([&](std::uint64_t i) {
      (void)nonces.begin({.nonce = {1, i}, .fingerprint = fingerprint});
    });
    const double hash = nanoseconds([&](std::uint64_t) {
      (void)fingerprint_of({"increment", "counter", "1"});
    });

    NoRows rows;
    const auto sessions = must(ClientSessions::load(rows), "loading sessions");
    Session session;
    sessions->open("t", "", 0, [&](const Result<Session>& opened) { session = *opened; });
    RowBatch effect;
    const double request = nanoseconds([&](std::uint64_t i) {
      SessionAnswer answer = sessions->begin(
          {.session = session.id, .number = i, .first_unacked = i, .fingerprint = fingerprint});
      effect.clear();
      answer.owner.save(effect, std::string("7"));
      answer.owner.done();
    });
    memory_.add({.values = {{"map_insert_ns", least},
                            {"new_nonce_ns", new_nonce},
                            {"duplicate_ns", duplicate},
                            {"fingerprint_ns", hash},
                            {"session_request_ns", request}},
                 .other_cores = meter.stop().other_cores});
  }

  void measure_durable(unsigned threads) {
    const RawSyncs raw = raw_.measure(options_.raw_window);
    const UsageMeter meter;
    const double without = increments_per_second(threads, false);
    const double with = increments_per_second(threads, true);
    durable_[threads].add({.values = {{"raw_syncs_per_s", raw.per_second},
                                      {"without_nonce_per_s", without},
                                      {"with_nonce_per_s", with},
                                      {"ratio", with / raw.per_second},
                                      {"ratio_to_without", with / without}},
                           .other_cores = meter.stop().other_cores});
  }

  double increments_per_second(unsigned threads, bool with_nonce) {
    const std::string path = folder_.fresh("store");
    double per_second = 0;
    {
      const auto rows = must(StoreRows::open(leveldb(path)), "opening the store");
      ServerNonceManager nonces;
      std::atomic<bool> over{false};
      std::atomic<std::uint64_t> done{0};
      std::vector<std::thread> clients;
      for (unsigned client = 0; client < threads; ++client) {
        clients.emplace_back([&, client] {
          const std::string counter = "counter/" + std::to_string(client);
          for (std::uint64_t i = 1; !over.load(std::memory_order_relaxed); ++i) {
            RowBatch effect;
            effect.put(Space::kHost, counter, std::to_string(i));
            NonceAnswer answer;
            if (with_nonce) {
              answer = must(nonces.begin({.nonce = {client + 1, i},
                                          .fingerprint = fingerprint_of({"increment", counter})}),
                            "a nonce");
              answer.owner.save(effect, std::to_string(i));
            }
            must(rows->commit(std::move(effect)), "a commit");
            if (with_nonce) answer.owner.succeed();
            done.fetch_add(1, std::memory_order_relaxed);
          }
        });
      }
      std::this_thread::sleep_for(options_.warm_up);
      const std::uint64_t before = done.load();
      const auto begin = BenchClock::now();
      std::this_thread::sleep_for(options_.window);
      const std::chrono::duration<double> passed = BenchClock::now() - begin;
      per_second = static_cast<double>(done.load() - before) / passed.count();
      over = true;
      for (std::thread& client : clients) client.join();
    }
    folder_.remove(path);
    return per_second;
  }

  const Options options_;
  WorkFolder folder_;
  RawSync raw_;
  Rounds memory_;
  std::map<unsigned, Rounds> durable_;
};

}  // namespace
}  // namespace pv2::bench

int main(int argc, char** argv) {
  using namespace pv2::bench;
  DedupBench(parse_options(argc, argv, "dedup_bench")).run();
}
