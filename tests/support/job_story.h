// SPDX-License-Identifier: Apache-2.0
//
// JobStory: a CrashStory of scripted jobs. Each is submitted by a client, which repeats that with
// the same nonce until it has seen the result. The story checks what has to be true wherever the
// crashes were: a nonce keeps its procedure, and a result its bytes; an effect happens at most once
// more per crash, and not after it was undone; only the results are left in the store.

#pragma once

#include <pv2/engine/inspection.h>
#include <pv2/engine/operator_console.h>
#include <pv2/engine/procedure_registry.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.h"
#include "support/crash_everywhere.h"
#include "support/scripted_job.h"

namespace pv2::testing {

/// A job without an undo, and one of which only the second step has one.
struct PlainJobKind : JobKind {
  static constexpr std::string_view kType = "test.PlainJob";
  static constexpr auto kSteps =
      steps(step(JobStep::kOne, "ONE", kNoUndo), step(JobStep::kTwo, "TWO", kNoUndo),
            step(JobStep::kThree, "THREE", kNoUndo));
};
struct LateJobKind : JobKind {
  static constexpr std::string_view kType = "test.LateJob";
  static constexpr auto kSteps =
      steps(step(JobStep::kOne, "ONE", kNoUndo), step(JobStep::kTwo, "TWO", kUndoable),
            step(JobStep::kThree, "THREE", kNoUndo));
};
using PlainJob = ScriptedJob<PlainJobKind>;
using LateJob = ScriptedJob<LateJobKind>;

/// What one client submits, and expects.
struct JobRoot {
  std::string name;
  std::optional<bool> succeeds = true;  ///< nullopt: either, but always the same.
  enum class Type { kJob, kFinalJob, kCommittingJob } type = Type::kJob;
  /// The client aborts the job once the journal has this many entries, until it is answered.
  std::size_t aborts_at = SIZE_MAX;
  /// The client sends the job these payloads as signals "go", one after the other, each until it is
  /// told that the signal is durable, or sees "got <payload>" in the journal.
  std::vector<std::string> signals{};
};

/// The script of a story; immutable while it is played.
struct JobPlot {
  std::map<std::string, JobScript> scripts;
  std::vector<JobRoot> roots;
  /// Each client acknowledges its result; then no row of it is left.
  bool acknowledges = false;
  /// How often an effect may happen without any crash.
  std::size_t repeats = 1;
  /// An operator gives this order to the root of a parked procedure, whenever there is one.
  std::optional<RepairVerb> repairs = std::nullopt;
  /// What else has to be true. `row` reads a row of the host.
  using Row = std::function<std::optional<std::string>(std::string_view key)>;
  std::function<void(const std::vector<std::string>& journal, const Row& row)> check = {};
};

class JobStory final : public CrashStory {
 public:
  explicit JobStory(const JobPlot& plot) : plot_(plot) {
    world_.scripts = plot.scripts;
    for (const JobRoot& root : plot.roots) {
      clients_.push_back({.root = &root, .nonce = {9, clients_.size() + 1}});
    }
  }

  void add_types(ProcedureRegistry& registry) override {
    add_job_types(registry, world_);
    registry.add<PlainJob>(world_).add<LateJob>(world_);
  }

  void begin_life(ProcedureExecutor& executor) override {
    ordering_ = false;
    for (Client& client : clients_) {
      client.told = client.acknowledging = client.aborting = client.signalling = false;
      if (client.acknowledged) continue;
      if (plot_.acknowledges && client.result) {
        ask_for_result(executor, client);
      } else {
        submit(executor, client);
      }
    }
  }

  bool after_turn(ProcedureExecutor& executor) override {
    bool sent = false;
    for (Client& client : clients_) {
      if (!client.signal_unknown) sent = signal(executor, client) || sent;
    }
    for (Client& client : clients_) {
      if (!client.id || client.aborting || client.abort_answered) continue;
      if (world_.journal.entries().size() < client.root->aborts_at) continue;
      client.aborting = sent = true;
      executor.async().abort(client.id, {.reason = "too late"}, [&client](const Status& status) {
        client.abort_accepted = status.ok();
        client.abort_answered = status.ok() || status.code() == StatusCode::kFailedPrecondition;
      });
    }
    return sent;
  }

  bool stir(ProcedureExecutor& executor) override {
    bool stirred = world_.answer_one("the answer");
    for (Client& client : clients_) stirred = signal(executor, client) || stirred;
    stirred = repair(executor) || stirred;
    for (Client& client : clients_) {
      if (!plot_.acknowledges || !client.told || client.acknowledged || client.acknowledging) {
        continue;
      }
      client.acknowledging = stirred = true;
      executor.async().acknowledge(client.id, [&client](const Status& status) {
        client.acknowledging = false;
        if (status.ok()) client.acknowledged = true;
      });
    }
    return stirred;
  }

  void check_end(CrashEnd& end) override {
    REQUIRE(end.executor.inspect().live_procedures() == 0);
    for (const Status& refusal : refused_) {  // only by a crash
      INFO(refusal.to_string());
      REQUIRE((refusal.code() == StatusCode::kUnknownOutcome ||
               refusal.code() == StatusCode::kIoError || refusal.code() == StatusCode::kStopping));
    }
    for (const Client& client : clients_) {
      INFO("client of " << client.root->name);
      REQUIRE(client.trouble.empty());
      if (plot_.acknowledges) {
        REQUIRE(client.acknowledged);
        continue;
      }
      REQUIRE(client.result.has_value());
      const ProcedureResult& result = *client.result;
      const bool succeeded = client.root->succeeds.value_or(result.status.ok());
      REQUIRE(result.state == (succeeded ? ProcedureState::kSuccess : ProcedureState::kRolledBack));
      REQUIRE(result.status.ok() == succeeded);
      REQUIRE(result.result == (succeeded ? client.root->name + " done" : ""));
      if (client.abort_accepted) REQUIRE(result.status.code() == StatusCode::kAborted);
    }
    check_rows(end.store);
    check_effects(end.crashes);
    if (plot_.check) {
      plot_.check(world_.journal.entries(), [&](std::string_view key) {
        auto row = end.store.get(Space::kHost, key);
        REQUIRE(row.ok());
        return *std::move(row);
      });
    }
  }

 private:
  struct Client {
    const JobRoot* root = nullptr;
    Nonce nonce;
    ProcedureId id{};  ///< Set once the client was told that it is durable.
    std::optional<ProcedureResult> result{};
    bool told = false;  ///< The result, in this life.
    bool acknowledging = false;
    bool acknowledged = false;
    bool aborting = false;
    bool abort_accepted = false;
    bool abort_answered = false;
    bool signalling = false;
    bool signal_unknown = false;  ///< The last signal may not be durable; stir() repeats it.
    std::size_t signalled = 0;
    std::string trouble{};
  };

  bool repair(ProcedureExecutor& executor) {
    if (!plot_.repairs || ordering_) return false;
    const ProcedurePage parked = executor.inspect().list({.parked = true}, {}, 1);
    if (parked.procedures.empty()) return false;
    ordering_ = true;
    REQUIRE(++orders_ < 1000);
    executor.operate().order(parked.procedures.front().root, *plot_.repairs,
                             {.who = "operator", .why = "it is parked"},
                             [this](const Status& status) {
                               ordering_ = false;
                               if (!status.ok()) refused_.push_back(status);
                             });
    return true;
  }

  bool signal(ProcedureExecutor& executor, Client& client) {
    while (client.signal_unknown && client.signalled < client.root->signals.size() &&
           world_.journal.count("got " + client.root->signals[client.signalled]) != 0) {
      client.signal_unknown = false;
      ++client.signalled;
    }
    if (!client.id || client.signalling || client.signalled >= client.root->signals.size()) {
      return false;
    }
    client.signalling = true;
    executor.async().signal(client.id, "go", client.root->signals[client.signalled],
                            [&client](const Status& status) {
                              client.signalling = false;
                              client.signal_unknown = !status.ok();
                              if (status.ok()) ++client.signalled;
                            });
    return true;
  }

  void submit(ProcedureExecutor& executor, Client& client) {
    auto told = [this, &executor, &client](const Result<Submitted>& answer) {
      if (!answer.ok()) return blame_the_crash(client, answer.status());
      if (client.id && answer->id != client.id) client.trouble = "another id for the same nonce";
      if (client.id && !answer->replayed) client.trouble = "a second run for the same nonce";
      client.id = answer->id;
      ask_for_result(executor, client);
    };
    const SubmitOptions options{.nonce = client.nonce, .owner = "client"};
    switch (client.root->type) {
      case JobRoot::Type::kJob:
        return executor.async().submit(Job(world_, client.root->name), options, told);
      case JobRoot::Type::kFinalJob:
        return executor.async().submit(FinalJob(world_, client.root->name), options, told);
      case JobRoot::Type::kCommittingJob:
        return executor.async().submit(CommittingJob(world_, client.root->name), options, told);
    }
  }

  void ask_for_result(ProcedureExecutor& executor, Client& client) {
    executor.async().wait(client.id, [this, &client](const Result<ProcedureResult>& answer) {
      if (!answer.ok()) {
        // The acknowledgement in the life before was durable, though it was not answered.
        client.acknowledged = client.result && answer.status().code() == StatusCode::kExpired;
        if (!client.acknowledged) blame_the_crash(client, answer.status());
        return;
      }
      client.told = true;
      if (client.result &&
          (client.result->result != answer->result || client.result->status != answer->status ||
           client.result->finished != answer->finished)) {
        client.trouble = "another result than before";
      }
      client.result = *answer;
    });
  }

  void blame_the_crash(Client& client, const Status& status) {
    client.acknowledging = false;
    const StatusCode code = status.code();
    if (code == StatusCode::kUnknownOutcome || code == StatusCode::kIoError ||
        code == StatusCode::kStopping) {
      return;
    }
    client.trouble = status.to_string();
  }

  void check_rows(ProcedureStore& store) {
    constexpr std::size_t kNumberedKey = 17;  // of messages, all gone; of audit rows
    const bool audited = plot_.repairs || std::any_of(plot_.roots.begin(), plot_.roots.end(),
                                                      [](const JobRoot& root) {
                                                        return root.aborts_at != SIZE_MAX;
                                                      });
    const auto count = [&](Space space) {
      std::size_t rows = 0;
      REQUIRE(store
                  .scan(space, "",
                        [&](const StoredRow& row) {
                          const bool numbered = row.key.size() == kNumberedKey;
                          const bool audit = numbered && row.key[8] == 4;
                          rows += audit && audited && !plot_.acknowledges ? 0 : 1;
                          return Status();
                        })
                  .ok());
      return rows;
    };
    const std::size_t kept = plot_.acknowledges ? 0 : clients_.size();
    REQUIRE(count(Space::kProcedure) == 0);
    REQUIRE(count(Space::kResult) == kept);
    REQUIRE(count(Space::kNonce) == kept);
  }

  void check_effects(std::size_t crashes) {
    struct Effect {
      std::size_t done = 0;
      std::size_t undone = 0;
    };
    std::map<std::string, Effect> effects;
    for (const std::string& entry : world_.journal.entries()) {
      INFO(entry);
      if (entry.starts_with("do ")) {
        Effect& effect = effects[entry.substr(3)];
        ++effect.done;
        REQUIRE(effect.undone == 0);
      } else if (entry.starts_with("undo ")) {
        ++effects[entry.substr(5)].undone;
      }
    }
    for (const auto& [step, effect] : effects) {
      INFO(step << " was done " << effect.done << " times, undone " << effect.undone
                << " times, in " << crashes << " crashes");
      REQUIRE(effect.done <= plot_.repeats + crashes);
      REQUIRE(effect.undone <= plot_.repeats + crashes);
    }
  }

  const JobPlot& plot_;
  World world_;
  std::vector<Client> clients_;
  bool ordering_ = false;
  std::size_t orders_ = 0;
  std::vector<Status> refused_;
};

/// Plays `plot` with a crash at every commit.
inline std::size_t crash_everywhere(const JobPlot& plot, const StoryPlan& plan = {}) {
  return check_everywhere([&plot] { return std::make_unique<JobStory>(plot); }, plan);
}

inline std::size_t count(const std::vector<std::string>& journal, std::string_view entry) {
  return static_cast<std::size_t>(std::count(journal.begin(), journal.end(), entry));
}

/// The last entry of every step is its undo.
inline void check_all_undone(const std::vector<std::string>& journal) {
  std::map<std::string, bool> undone;
  for (const std::string& entry : journal) {
    if (entry.starts_with("do ")) undone[entry.substr(3)] = false;
    if (entry.starts_with("undo ")) undone[entry.substr(5)] = true;
  }
  for (const auto& [step, was_undone] : undone) {
    INFO(step);
    REQUIRE(was_undone);
  }
}

/// The undo of `later` had ended before the undo of `earlier` began.
inline void check_undone_before(const std::vector<std::string>& journal, const std::string& later,
                                const std::string& earlier) {
  const auto last_later = std::find(journal.rbegin(), journal.rend(), "undo " + later).base();
  const auto first_earlier = std::find(journal.begin(), journal.end(), "undo " + earlier);
  INFO("undo " << later << " comes before undo " << earlier);
  REQUIRE(last_later <= first_earlier);
}

}  // namespace pv2::testing
