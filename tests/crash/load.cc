// SPDX-License-Identifier: Apache-2.0
//
// What the kinds of jobs do, and what their clients do.

#include "load.h"

#include <pv2/base/random.h>
#include <pv2/engine/async_executor.h>
#include <pv2/engine/executor_options.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

namespace pv2::testing {
namespace {

using namespace std::chrono_literals;

enum class JobKind {
  kPlain,
  kLocked,
  kLockedByStep,
  kTree,
  kRetrying,
  kOffloading,
  kFailing,
  kBadTree
};

JobKind kind_of(std::uint64_t key) { return static_cast<JobKind>(key % 8); }

// Enough to keep the workers and the committer busy; more would only make the queue longer.
constexpr int kPlaces = 48;

std::uint64_t number_in(const Result<std::optional<std::string>>& row) {
  return row.ok() && row->has_value() ? std::stoull(**row) : 0;
}

}  // namespace

Event event(Event::Kind kind, std::uint64_t key, std::uint64_t id, bool ok, std::string_view text) {
  Event made{.kind = kind, .ok = ok ? 1U : 0U, .key = key, .id = id};
  text.copy(made.text.data(), made.text.size() - 1);
  return made;
}

bool succeeds(std::uint64_t key) {
  return kind_of(key) != JobKind::kFailing && kind_of(key) != JobKind::kBadTree;
}
bool is_aborted_by_its_client(std::uint64_t key) { return key / 8 % 4 == 1; }
bool is_acknowledged_by_its_client(std::uint64_t key) { return key / 8 % 4 == 3; }
std::uint32_t children_of(std::uint64_t key) {
  return kind_of(key) == JobKind::kTree || kind_of(key) == JobKind::kBadTree ? 2 : 0;
}
int table_of(std::uint64_t key) {
  switch (kind_of(key)) {
    case JobKind::kLocked:
    case JobKind::kLockedByStep:
    case JobKind::kTree:
    case JobKind::kFailing:
    case JobKind::kBadTree:
      return static_cast<int>(key / 8 % kLoadTables);
    case JobKind::kPlain:
    case JobKind::kRetrying:
    case JobKind::kOffloading:
      return -1;
  }
  return -1;
}

std::string steps_row(std::uint64_t key, std::uint32_t child) {
  return "steps/" + std::to_string(key) + "/" + std::to_string(child);
}
std::string counter_row(int table) { return "counter/" + std::to_string(table); }

LockSet LoadJob::locks() const {
  const int table = table_of(key_);
  if (table < 0) return {};
  auto set = LockSet().table("load", std::to_string(table), LockMode::kExclusive);
  return kind_of(key_) == JobKind::kLockedByStep ? set.scope(LockScope::kStep) : set;
}

// Both rows change with the record of the step, or not at all: a run whose record was lost left
// nothing, and a run whose record is durable is not repeated.
void LoadJob::count(LoadStep step, StepContext& ctx, bool forward) {
  const std::string own = steps_row(key_, child_);
  const std::uint64_t bit = 1ULL << (static_cast<unsigned>(step) - 1);
  const std::uint64_t done = number_in(ctx.get_row(own));
  if (forward && (done & bit) != 0) {
    report_(event(Event::Kind::kTrouble, key_, ctx.id().value, false,
                  own + ": a step whose record was durable ran again"));
  }
  if (!forward && (done & bit) == 0) return;  // the step failed, or never began
  ctx.put_row(own, std::to_string(done ^ bit));
  // Only roots count: the parent's lock covers its children too, and they may run at once.
  if (const int table = table_of(key_); table >= 0 && child_ == 0) {
    const std::uint64_t counted = number_in(ctx.get_row(counter_row(table)));
    ctx.put_row(counter_row(table), std::to_string(forward ? counted + 1 : counted - 1));
  }
}

LoadJob::Flow LoadJob::execute_from_state(LoadStep step, StepContext& ctx) {
  report_(event(Event::Kind::kRan, key_, ctx.id().value));
  const JobKind kind = kind_of(key_);
  if (step == LoadStep::kTwo) {
    if (kind == JobKind::kPlain && !ctx.timed_out()) return wait_for(50us);
    if (kind == JobKind::kRetrying && ctx.attempt() < 3) {
      return retry(Status(StatusCode::kUnavailable, "not yet"));
    }
    if (kind == JobKind::kOffloading && ctx.offload([] { return 1; }) == nullptr) return wait();
    if (child_ == 0) {
      for (std::uint32_t i = 1; i <= children_of(key_); ++i) ctx.spawn(LoadJob(report_, key_, i));
    }
  }
  const bool fails = step == LoadStep::kThree &&
                     (kind == JobKind::kFailing || (kind == JobKind::kBadTree && child_ == 2));
  if (fails) return fail(Status(StatusCode::kFailedPrecondition, "as it was told"));
  count(step, ctx, true);
  if (step != LoadStep::kThree)
    return next(step == LoadStep::kOne ? LoadStep::kTwo : LoadStep::kThree);
  // Every run returns another value, so only a durable result can be told twice.
  return done(std::to_string(key_) + " at " + std::to_string(ctx.now().time_since_epoch().count()));
}

LoadJob::Flow LoadJob::rollback_state(LoadStep step, StepContext& ctx) {
  report_(event(Event::Kind::kRan, key_, ctx.id().value));
  count(step, ctx, false);
  return undone();
}

Result<std::unique_ptr<ProcedureExecutor>> open_for_load(std::unique_ptr<ProcedureStore> store,
                                                         const Report& report, unsigned workers,
                                                         Load load) {
  ExecutorOptions options;
  options.load = load;
  options.store = std::move(store);
  options.registry.add<LoadJob>(report);
  options.workers = workers;
  options.pool_threads = 2;
  options.retry = {.base = 20us, .cap = 100us};
  options.log = {};
  return ProcedureExecutor::open(std::move(options));
}

void submit_key(ProcedureExecutor& executor, const Report& report, std::uint64_t key,
                SubmitCallback done) {
  report(event(Event::Kind::kSubmits, key));
  executor.async().submit(LoadJob(report, key), {.nonce = {7, key}, .owner = std::to_string(key)},
                          std::move(done));
}

void run_clients(ProcedureExecutor& executor, const Report& report, KeyRange keys,
                 std::uint64_t seed, std::uint64_t keys_max) {
  std::atomic<std::uint64_t> next = keys.next;
  std::atomic<bool> refused = false;
  // A place is held from a submission to its last answer.
  std::counting_semaphore<> free_places(kPlaces);

  const auto see_the_end = [&](std::uint64_t key, ProcedureId id) {
    executor.async().wait(id, [&, key, id](const Result<ProcedureResult>& ended) {
      if (!ended.ok()) {
        refused = true;
        return free_places.release();
      }
      report(event(Event::Kind::kEnded, key, id.value, ended->status.ok(), ended->result));
      if (!is_acknowledged_by_its_client(key)) return free_places.release();
      report(event(Event::Kind::kAcknowledges, key, id.value));
      executor.async().acknowledge(id, [&, key, id](const Status& status) {
        if (status.ok()) report(event(Event::Kind::kAcknowledged, key, id.value));
        free_places.release();
      });
    });
  };
  const auto submit = [&](std::uint64_t key) {
    submit_key(executor, report, key, [&, key](const Result<Submitted>& submitted) {
      if (!submitted.ok()) {
        refused = true;
        return free_places.release();
      }
      const ProcedureId id = submitted->id;
      report(event(Event::Kind::kSubmitted, key, id.value));
      if (!is_aborted_by_its_client(key)) return see_the_end(key, id);
      report(event(Event::Kind::kAborts, key, id.value));
      executor.async().abort(id, {}, [&, key, id](const Status& status) {
        if (status.ok()) report(event(Event::Kind::kAborted, key, id.value));
        see_the_end(key, id);
      });
    });
  };

  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      Random random(seed * 3 + thread);
      for (;;) {
        free_places.acquire();
        const std::uint64_t known = next - keys.first;
        const std::uint64_t old = known == 0 ? 0 : keys.first + random.below(known);
        if (refused) return free_places.release();
        if (known != 0 && random.below(4) == 0 && !is_acknowledged_by_its_client(old)) {
          submit(old);
          continue;
        }
        const std::uint64_t key = next++;
        if (key - keys.next >= keys_max) return free_places.release();
        submit(key);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // When all places are free, every client has its answers.
  for (int place = 0; place < kPlaces; ++place) free_places.acquire();
}

}  // namespace pv2::testing
