// SPDX-License-Identifier: Apache-2.0
//
// The commit pipeline without a disk: the queue in front of a store, its thread, and the return of
// answers, around a writer that does nothing. A single commit costs two wake-ups of a thread; in
// batches only the cost of a request remains.

#include <benchmark/benchmark.h>
#include <pv2/store/noop_procedure_store.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "committer.h"

namespace {

using pv2::CommitList;
using pv2::CommitRequest;

class NoWriter final : public pv2::UnitWriter {
 public:
  pv2::Status write(const CommitList& /*unit*/) override { return {}; }
};

/// Counts the requests that come back. Thread-safe.
class CountingSink final : public pv2::CommitSink {
 public:
  void on_committed(CommitList finished) noexcept override {
    returned_.fetch_add(finished.size(), std::memory_order_release);
    returned_.notify_one();
  }
  void wait_for(std::uint64_t count) const {
    for (std::uint64_t now = returned_.load(std::memory_order_acquire); now < count;
         now = returned_.load(std::memory_order_acquire)) {
      returned_.wait(now, std::memory_order_acquire);
    }
  }

 private:
  std::atomic<std::uint64_t> returned_{0};
};

class Request final : public CommitRequest {
 public:
  Request() { batch.update(pv2::Space::kProcedure, "123456789", std::string(150, 'v')); }
};

constexpr pv2::StoreLimits kLimits{.batch_operations = 65'536, .batch_bytes = 16 << 20};

void commit(benchmark::State& state, std::size_t together) {
  NoWriter writer;
  CountingSink sink;
  pv2::Committer committer("bench", writer, sink, pv2::CommitSequence{},
                           {.limits = kLimits, .unit_size = kLimits});
  std::vector<Request> requests(together);
  std::uint64_t sent = 0;
  for (auto _ : state) {
    CommitList list;
    for (Request& request : requests) list.push_back(request);
    committer.commit_all(list);
    sent += together;
    sink.wait_for(sent);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(sent));
  committer.close();
}
void round_trip(benchmark::State& state) {
  commit(state, static_cast<std::size_t>(state.range(0)));
}
BENCHMARK(round_trip)->Arg(1)->Arg(16)->Arg(1024)->UseRealTime();

void fill_a_batch(benchmark::State& state) {
  pv2::RowBatch batch;
  const std::string value(static_cast<std::size_t>(state.range(0)), 'v');
  for (auto _ : state) {
    batch.clear();
    batch.update(pv2::Space::kProcedure, "123456789", value);
    benchmark::DoNotOptimize(batch.bytes());
  }
}
BENCHMARK(fill_a_batch)->Arg(150)->Arg(1000);

void commit_to_noop(benchmark::State& state) {
  CountingSink sink;
  pv2::NoopProcedureStore store;
  if (!store.recover_lease(sink).ok()) state.SkipWithError("the Noop store refused to open");
  Request request;
  for (auto _ : state) benchmark::DoNotOptimize(store.commit(request));
  store.close();
}
BENCHMARK(commit_to_noop);

}  // namespace
