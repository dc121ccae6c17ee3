// SPDX-License-Identifier: Apache-2.0
//
// Compares what the clients were told with what is in the store.

#include "ledger.h"

#include <pv2/engine/async_executor.h>
#include <pv2/engine/inspection.h>
#include <pv2/engine/procedure_info.h>

#include <algorithm>
#include <latch>
#include <utility>

#include "support/all_rows.h"

namespace pv2::testing {
namespace {

using namespace std::chrono_literals;

std::string name_of(std::uint64_t number) { return "key " + std::to_string(number); }

bool is_gone(const Status& status) {
  return status.code() == StatusCode::kExpired || status.code() == StatusCode::kNotFound;
}

// Takes back the requests of count_rows().
class LastSink final : public CommitSink {
 public:
  void on_committed(CommitList finished) noexcept override {
    while (finished.pop_front() != nullptr) {
    }
  }
};
struct LastRequest : CommitRequest {};

}  // namespace

void Ledger::note(const Event& event) {
  MutexLock lock(keys_mutex_);
  Key& key = keys_[event.key];
  switch (event.kind) {
    case Event::Kind::kAlive:
    case Event::Kind::kOpened:
      keys_.erase(event.key);
      return;
    case Event::Kind::kSubmits:
      key.begun = true;
      next_ = std::max(next_, event.key + 1);
      return;
    case Event::Kind::kSubmitted:
      ++submitted_;
      if (key.id != 0 && key.id != event.id) {
        troubles_.push_back(name_of(event.key) + " was told two ids: " + std::to_string(key.id) +
                            " and " + std::to_string(event.id));
      }
      key.id = event.id;
      return;
    case Event::Kind::kRan:
      ++runs_;
      if (!key.begun) troubles_.push_back(name_of(event.key) + " ran and was never submitted");
      return;
    case Event::Kind::kEnded: {
      const std::pair<bool, std::string> end(event.ok != 0, event.said());
      if (key.end && *key.end != end) {
        troubles_.push_back(name_of(event.key) + " was told two ends: '" + key.end->second +
                            "' and '" + end.second + "'");
      }
      key.end = end;
      return;
    }
    case Event::Kind::kAborts:
      key.aborts = true;
      return;
    case Event::Kind::kAborted:
      if (key.end && key.end->first) {
        troubles_.push_back(name_of(event.key) + " had succeeded and was aborted after that");
      }
      key.aborted = true;
      return;
    case Event::Kind::kAcknowledges:
      key.acknowledges = true;
      return;
    case Event::Kind::kAcknowledged:
      key.acknowledged = true;
      return;
    case Event::Kind::kTrouble:
      troubles_.push_back(name_of(event.key) + ": " + std::string(event.said()));
      return;
  }
}

void Ledger::check_found(const MakeStore& make_store) {
  const auto keys = snapshot();
  const Report report = [this](const Event& event) { note(event); };
  auto opened = open_for_load(make_store(), report, 1);
  if (!opened.ok()) return trouble("open after a crash: " + opened.status().to_string());
  ProcedureExecutor& executor = **opened;  // never started: nothing goes on

  std::map<std::uint64_t, std::uint64_t> live;  // id of each root by its key
  for (const ProcedureInfo& info : executor.inspect().list()) {
    const std::uint64_t number = std::stoull(info.owner);
    if (info.quarantined || info.parked) {
      trouble(name_of(number) + " is parked or quarantined: " + info.error.to_string());
    }
    const auto key = keys.find(number);
    if (key == keys.end() || !key->second.begun) {
      trouble(name_of(number) + " is in the store and was never submitted");
    }
    if (info.id == info.root && !live.emplace(number, info.id.value).second) {
      trouble(name_of(number) + " is in the store twice");
    }
  }
  for (const auto& [number, key] : keys) {
    const auto at = live.find(number);
    if (key.id == 0) continue;
    if (at != live.end()) {
      if (at->second != key.id) trouble(name_of(number) + " came back under another id");
      if (key.end) trouble(name_of(number) + " had ended and is live again");
      continue;
    }
    const auto result = executor.wait(ProcedureId{key.id});
    if (result.ok()) {
      if (key.acknowledged) trouble(name_of(number) + " was acknowledged and is still there");
      compare(number, key, *result);
    } else if (!key.acknowledges || !is_gone(result.status())) {
      trouble(name_of(number) + " was accepted and is lost: " + result.status().to_string());
    }
  }
}

void Ledger::check_ended(const MakeStore& make_store) {
  const auto keys = snapshot();
  const Report report = [this](const Event& event) { note(event); };
  {
    auto opened = open_for_load(make_store(), report);
    if (!opened.ok()) return trouble("open after a crash: " + opened.status().to_string());
    (*opened)->start();
    end_all(**opened, report, keys);
    if ((*opened)->inspect().live_procedures() != 0)
      trouble("something is live that nobody submitted");
  }
  LastSink sink;
  const auto store = make_store();
  if (const Status status = store->recover_lease(sink); !status.ok()) {
    return trouble("open to count: " + status.to_string());
  }
  count_rows(*store);
  store->close();
  MutexLock lock(keys_mutex_);
  keys_.clear();
  first_ = next_;
}

// Ends all keys at once, so that one sync serves many. A key is finished when it was acknowledged.
void Ledger::end_all(ProcedureExecutor& executor, const Report& report,
                     const std::map<std::uint64_t, Key>& keys) {
  std::latch left(static_cast<std::ptrdiff_t>(keys.size()));
  const auto finish = [&](std::uint64_t number, const Key& key, ProcedureId id) {
    executor.async().wait(id, [&, number, id](const Result<ProcedureResult>& result) {
      if (result.ok()) {
        compare(number, key, *result);
        report(event(Event::Kind::kEnded, number, id.value, result->status.ok(), result->result));
      } else if (!key.acknowledges || !is_gone(result.status())) {
        trouble(name_of(number) + " has no end: " + result.status().to_string());
      }
      executor.async().acknowledge(id, [&, number](const Status& status) {
        if (!status.ok() && !(key.acknowledges && is_gone(status))) {
          trouble(name_of(number) + " cannot be acknowledged: " + status.to_string());
        }
        left.count_down();
      });
    });
  };
  for (const auto& [number, key] : keys) {
    if (key.acknowledges) {  // its nonce may be forgotten: submitted again, it would run again
      finish(number, key, ProcedureId{key.id});
      continue;
    }
    submit_key(executor, report, number, [&, number = number](const Result<Submitted>& again) {
      if (!again.ok()) {
        trouble(name_of(number) + ": " + again.status().to_string());
        return left.count_down();
      }
      const Key& told = keys.at(number);
      if (told.id != 0 && again->id.value != told.id) {
        trouble(name_of(number) + " was started a second time");
      }
      finish(number, told, again->id);
    });
  }
  left.wait();
}

void Ledger::compare(std::uint64_t number, const Key& key, const ProcedureResult& result) {
  const bool success = result.status.ok();
  const bool right = key.aborted || !succeeds(number) ? !success : success || key.aborts;
  if (!right) {
    trouble(name_of(number) + " ended as it should not: " + result.status.to_string());
  }
  if (key.end && *key.end != std::pair(success, result.result)) {
    trouble(name_of(number) + " has another end than the one that was told");
  }
}

void Ledger::count_rows(ProcedureStore& store) {
  std::map<std::string, std::uint64_t> expected;
  for (const auto& [number, key] : snapshot()) {
    if (!key.end) trouble(name_of(number) + " was submitted and its end was never told");
    if (!key.end || !key.end->first) continue;
    for (std::uint32_t child = 0; child <= children_of(number); ++child) {
      expected[steps_row(number, child)] = (1U << kLoadSteps) - 1;
    }
    if (const int table = table_of(number); table >= 0) expected[counter_row(table)] += kLoadSteps;
  }
  LastRequest cleaning;
  const Status loaded = testing::visit_all(store, [&](const StoredRow& row) {
    const std::string key(row.key);
    if (row.space == Space::kProcedure || row.space == Space::kNonce ||
        row.space == Space::kResult) {
      trouble("rows of procedures are left after everything was acknowledged");
    }
    if (row.space != Space::kHost) return Status();
    cleaning.batch.erase(Space::kHost, row.key);
    const std::string value(row.value);
    const auto at = expected.find(key);
    const std::uint64_t right = at == expected.end() ? 0 : at->second;
    if (value != std::to_string(right)) {
      trouble("row " + key + " says " + value + " instead of " + std::to_string(right));
    }
    if (at != expected.end()) expected.erase(at);
    return Status();
  });
  if (!loaded.ok()) trouble("counting: " + loaded.to_string());
  for (const auto& [row, value] : expected) trouble("row " + row + " is lost");
  store.commit(cleaning);
  while (store.pump()) {
  }
  store.close();  // returns when everything is durable
  if (!cleaning.status.ok()) trouble("cleaning: " + cleaning.status.to_string());
}

std::map<std::uint64_t, Ledger::Key> Ledger::snapshot() const {
  MutexLock lock(keys_mutex_);
  return keys_;
}

void Ledger::trouble(std::string what) {
  MutexLock lock(keys_mutex_);
  troubles_.push_back(std::move(what));
}

KeyRange Ledger::keys() const {
  MutexLock lock(keys_mutex_);
  return {.first = first_, .next = next_};
}
std::vector<std::string> Ledger::troubles() const {
  MutexLock lock(keys_mutex_);
  return troubles_;
}
std::uint64_t Ledger::submitted() const {
  MutexLock lock(keys_mutex_);
  return submitted_;
}
std::uint64_t Ledger::runs() const {
  MutexLock lock(keys_mutex_);
  return runs_;
}

}  // namespace pv2::testing
