// SPDX-License-Identifier: Apache-2.0
//
// What the store tests share: a request with a number, a sink that remembers, temporary
// directories, and the list of stores that the conformance suite runs on. Nothing here checks
// anything by itself.

#pragma once

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/base/mutex.h"
#include "pv2/store/leveldb_procedure_store.h"
#include "pv2/store/memory_procedure_store.h"
#include "pv2/store/noop_procedure_store.h"
#include "support/all_rows.h"
#include "support/crash_env.h"
#include "support/temporary_directory.h"

namespace pv2::testing {

/// A request that knows its number.
struct Request : CommitRequest {
  int number = 0;
};

/// Remembers what came back. Thread-safe.
class RecordingSink final : public CommitSink {
 public:
  struct Answer {
    int number = 0;
    CommitSequence sequence;
    Status status;
  };

  void on_committed(CommitList finished) noexcept override {
    std::vector<Answer> answers;
    while (CommitRequest* const request = finished.pop_front()) {
      auto& numbered = static_cast<Request&>(*request);
      answers.push_back({numbered.number, numbered.sequence, numbered.status});
      if (then) then(numbered);
    }
    MutexLock lock(answers_mutex_);
    ++lists_;
    answers_.insert(answers_.end(), answers.begin(), answers.end());
    arrived_.notify_all();
  }

  /// Waits until `count` answers are there; with a store that is pumped, pumps it.
  std::vector<Answer> wait_for(std::size_t count, ProcedureStore& store) {
    for (;;) {
      if (store.pump()) continue;
      MutexLock lock(answers_mutex_);
      if (answers_.size() >= count) return answers_;
      arrived_.wait(answers_mutex_);
    }
  }
  [[nodiscard]] std::vector<Answer> answers() const {
    MutexLock lock(answers_mutex_);
    return answers_;
  }
  /// The highest number of a request that is durable; 0: none is.
  [[nodiscard]] int last_acknowledged() const {
    MutexLock lock(answers_mutex_);
    int last = 0;
    for (const Answer& answer : answers_) {
      if (answer.status.ok()) last = std::max(last, answer.number);
    }
    return last;
  }
  [[nodiscard]] std::size_t lists() const {
    MutexLock lock(answers_mutex_);
    return lists_;
  }

  /// Called for each request that comes back, with nothing locked. Set before the first commit.
  std::function<void(Request&)> then;

 private:
  mutable Mutex answers_mutex_;
  CondVar arrived_;
  std::vector<Answer> answers_ PV2_GUARDED_BY(answers_mutex_);
  std::size_t lists_ PV2_GUARDED_BY(answers_mutex_) = 0;
};

/// A place where stores of one kind can be opened one after the other, each finding what the last
/// one left.
struct StorePlace {
  std::string kind;
  std::function<std::unique_ptr<ProcedureStore>(StoreLimits limits)> open;
};

inline constexpr StoreLimits kTestLimits{.batch_operations = 5'000, .batch_bytes = 4 << 20};

inline StorePlace memory_place(MemoryStoreOptions::Mode mode) {
  const bool pumped = mode == MemoryStoreOptions::Mode::kPump;
  auto disk = std::make_shared<MemoryDisk>();
  return {pumped ? "memory, pumped" : "memory, threaded", [disk, mode](StoreLimits limits) {
            return memory(disk, {.mode = mode, .limits = limits});
          }};
}

/// Files of the log that a few commits fill, so that rows move on all the time.
struct SmallLog {
  std::size_t segments = 2;
};

inline void make_small(LevelDbOptions& options, std::optional<SmallLog> small, std::string& kind) {
  if (!small) return;
  options.segment_bytes = 4'096;
  options.segments = small->segments;
  kind += ", log of " + std::to_string(small->segments) + " small files";
}

inline StorePlace leveldb_place(LevelDbOptions::Committer committer,
                                std::optional<SmallLog> small = {}) {
  const bool pumped = committer == LevelDbOptions::Committer::kPump;
  auto directory = std::make_shared<TemporaryDirectory>();
  StorePlace place{pumped ? "leveldb, pumped" : "leveldb, threaded", {}};
  LevelDbOptions options{.committer = committer};
  make_small(options, small, place.kind);
  place.open = [directory, options](StoreLimits limits) mutable {
    options.limits = limits;
    return leveldb(directory->path("store"), options);
  };
  return place;
}

/// A store on `env` that is pumped by hand.
inline LevelDbOptions on_crash_env(CrashEnv& env) {
  return {.committer = LevelDbOptions::Committer::kPump,
          .env = env.as_env(),
          .segment_files = env.as_segment_files(),
          .sync_directory = env.directory_sync()};
}

/// The same with files of the log that a few commits fill.
inline LevelDbOptions on_crash_env(CrashEnv& env, std::size_t segment_bytes, std::size_t segments) {
  LevelDbOptions options = on_crash_env(env);
  options.segment_bytes = segment_bytes;
  options.segments = segments;
  return options;
}

inline StorePlace crash_env_place(LevelDbOptions::Committer committer,
                                  std::optional<SmallLog> small = {}) {
  const bool pumped = committer == LevelDbOptions::Committer::kPump;
  auto env = std::make_shared<CrashEnv>();
  StorePlace place{pumped ? "leveldb on CrashEnv, pumped" : "leveldb on CrashEnv, threaded", {}};
  LevelDbOptions options = on_crash_env(*env);
  options.committer = committer;
  make_small(options, small, place.kind);
  place.open = [env, options](StoreLimits limits) mutable {
    options.limits = limits;
    return leveldb("store", options);
  };
  return place;
}

/// Every store that keeps records, each on an empty place.
inline std::vector<StorePlace> all_places() {
  using Memory = MemoryStoreOptions::Mode;
  using LevelDb = LevelDbOptions::Committer;
  std::vector<StorePlace> places{
      memory_place(Memory::kPump),     memory_place(Memory::kThread),
      leveldb_place(LevelDb::kPump),   leveldb_place(LevelDb::kThread),
      crash_env_place(LevelDb::kPump), crash_env_place(LevelDb::kThread)};
  for (const std::size_t segments : {2, 3, 4}) {
    const SmallLog small{segments};
    places.push_back(crash_env_place(LevelDb::kPump, small));
    places.push_back(crash_env_place(LevelDb::kThread, small));
  }
  places.push_back(leveldb_place(LevelDb::kThread, SmallLog{3}));
  return places;
}

/// "P:key=value@sequence" of every row, in order of space and key.
inline std::vector<std::string> load_rows(ProcedureStore& store) {
  std::vector<std::string> rows;
  const Status status = visit_all(store, [&](const StoredRow& row) {
    rows.push_back(std::string(1, static_cast<char>(row.space)) + ":" + std::string(row.key) + "=" +
                   std::string(row.value) + "@" + std::to_string(row.sequence.value));
    return Status();
  });
  if (!status.ok()) rows.push_back("failed: " + status.to_string());
  return rows;
}

inline std::vector<std::string> scan_rows(ProcedureStore& store, Space space,
                                          std::string_view prefix) {
  std::vector<std::string> rows;
  const Status status = store.scan(space, prefix, [&](const StoredRow& row) {
    rows.push_back(std::string(row.key) + "=" + std::string(row.value));
    return Status();
  });
  if (!status.ok()) rows.push_back("failed: " + status.to_string());
  return rows;
}

// Commits one row per call; the store is pumped by hand.
class Writer {
 public:
  explicit Writer(CrashEnv& env) : Writer(on_crash_env(env)) {}
  explicit Writer(LevelDbOptions options) : store_("store", std::move(options)) {}

  Status open() { return store_.recover_lease(sink_); }
  Status write(const std::string& key) {
    return commit([&](RowBatch& batch) { batch.insert(Space::kHost, key, "value of " + key); });
  }
  Status commit(const std::function<void(RowBatch&)>& fill) {
    Request& request = requests_.emplace_back();
    fill(request.batch);
    store_.commit(request);
    store_.pump();
    return sink_.answers().back().status;
  }
  LevelDbProcedureStore& store() { return store_; }
  RecordingSink& sink() { return sink_; }

 private:
  std::deque<Request> requests_;
  RecordingSink sink_;
  LevelDbProcedureStore store_;
};

/// Copies the files of `from` to `to`, where all of them are durable.
inline void copy_files(const CrashEnv& from, CrashEnv& to) {
  for (const std::string& file : from.files()) to.set_contents(file, from.contents(file));
  static_cast<void>(to.CreateDir("store").ok());
  static_cast<void>(to.directory_sync()(".").ok());
}

/// The log of the database that was begun last.
inline std::string last_database_log(const CrashEnv& env) {
  std::string log;
  for (const std::string& file : env.files()) {
    if (file.ends_with(".log")) log = file;
  }
  return log;
}

}  // namespace pv2::testing
