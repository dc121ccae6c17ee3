// SPDX-License-Identifier: Apache-2.0
//
// Effects: what a critical section has decided, and Publisher::perform() does after the state mutex
// was released: requests to the store, answers, callbacks, log lines, and what is to be destroyed.

#pragma once

#include <pv2/base/log.h>
#include <pv2/store/commit_request.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/task_pool.h"
#include "model/reply.h"

namespace pv2 {

struct Execution;
struct GarbageCommit;
struct TreeWork;
class RollbackPlan;

/// Owned by the thread whose section fills it.
struct Effects {
  CommitList commits;
  CommitList entered;  ///< InsertCommits whose roots first ask the scheduler for their locks.
  std::vector<std::unique_ptr<GarbageCommit>> garbage;  ///< Each commits its next chunk.
  /// Answers by engine code: a latch, or what follows from an answer. They run at once, on the
  /// thread that performs the effects.
  TaskList answers;
  /// Answers and callbacks by the host's code. They run on the pool.
  TaskList pool_tasks;
  /// Answers by the host's code that run on the thread that performs the effects, after the others,
  /// or on the pool if that thread has called very many (Publisher::publish()).
  TaskList host_calls;
  /// Answers to crowds (submission/waiters.h). They run on the thread that performs the effects,
  /// and never on the pool: the pool's threads may all wait for a blocked caller who is in the
  /// crowd.
  TaskList crowds;
  /// Requests that are durable already and are to be published now.
  CommitList durable;
  /// To be destroyed: the scheduler has forgotten them, and no pointer to them is left.
  std::vector<std::unique_ptr<Execution>> retired;
  std::vector<std::unique_ptr<RollbackPlan>> retired_plans;
  std::vector<TreeWork*> to_sort;  ///< The publisher sorts what they collected; then they go on.
  std::vector<std::pair<LogLevel, std::string>> log_lines;
  /// Another timer has become the earliest.
  bool timers_moved = false;
  /// The thread that performs the effects has nothing to do until `commits` are durable, and calls
  /// ProcedureStore::write_queued() next.
  bool caller_writes = false;

  Effects();
  ~Effects();
  Effects(const Effects&) = delete;
  Effects& operator=(const Effects&) = delete;

  void log(LogLevel level, std::string line) { log_lines.emplace_back(level, std::move(line)); }
  /// Gives the answer `value` where `reply` says. Does nothing if `reply` is empty.
  template <class T>
  void reply(Reply<T> reply, std::type_identity_t<T> value) {
    if (!reply) return;
    auto call_host = [&] {
      return [tell = std::move(reply.tell), value = std::move(value)]() mutable {
        call_back(tell, std::move(value));
      };
    };
    switch (reply.on) {
      case ReplyOn::kPool:
        pool_tasks.emplace_back(call_host());
        break;
      case ReplyOn::kEngine:
        host_calls.emplace_back(call_host());
        break;
      case ReplyOn::kHere:
      case ReplyOn::kWaitingCaller:
        answers.emplace_back([tell = std::move(reply.tell), value = std::move(value)]() mutable {
          tell(std::move(value));
        });
        break;
    }
  }
};

}  // namespace pv2
