// SPDX-License-Identifier: Apache-2.0
//
// TaskSpec: what one task of the mixed workload does, as data, and the generator that makes whole
// trees of them from a seed. It also computes how a tree may end, for the checks at the end. Plain
// data; runs nothing.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/random.h>
#include <pv2/base/resource.h>
#include <pv2/scheduler/priority.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pv2::testing {

/// What a step does before it goes on.
struct StepSpec {
  enum class Does : std::uint8_t {
    kPlain,          ///< Has its effect, nothing else.
    kSpawn,          ///< Spawns the children of the task.
    kRetry,          ///< Fails for now, `times` times.
    kAwait,          ///< Waits for an answer from outside.
    kTimedWait,      ///< Waits for `patience`.
    kAwaitOrTime,    ///< Waits for an answer, at most for `patience`.
    kOffload,        ///< Waits for work on the pool.
    kOffloadOrTime,  ///< Like kOffload, at most for `patience`; the work then runs on.
    kSignal,         ///< Waits for `times` durable signals.
    kSignalOrTime,   ///< Like kSignal for one signal, at most for `patience`.
    kEvent,          ///< Waits for one of the host's events.
    kEventOrTime,    ///< Like kEvent, at most for `patience`.
    kAgain,          ///< Runs `times` times more.
    kFail,           ///< Fails for good.
    kThrow,          ///< Throws, which has the same result.
  };
  Does does = Does::kPlain;
  std::uint32_t times = 0;  ///< For an event: which one.
  Duration patience{};
  bool writes_row = false;
  /// Fails for now once. kSignal: when it has its signals. kOffloadOrTime: when its time is over.
  bool retries = false;
  bool unsure = false;          ///< kRetry: the first attempt may have had its effect.
  bool beside_earlier = false;  ///< kOffloadOrTime: its work may run while an earlier copy runs.
};

struct TaskSpec {
  enum class Kind : std::uint8_t {
    kUndoable,
    kFinal,       ///< Is not undone once it has succeeded.
    kCommitting,  ///< Has a point of no return in its third step.
    kPlain,       ///< None of its steps has an undo.
    kLate,        ///< Only its second step has an undo.
  };
  std::size_t index = 0;
  std::size_t root = 0;    ///< The index of its root.
  std::size_t parent = 0;  ///< The index of its parent; a root has its own.
  bool reports = false;    ///< A child whose failure goes to its parent and fails no other task.
  bool beside = false;     ///< A child that is undone concurrently with siblings of the same kind.
  Kind kind = Kind::kUndoable;
  std::vector<StepSpec> steps;
  std::vector<std::size_t> children;
  LockSet locks;
  Priority priority = Priority::kNormal;
  std::uint32_t undo_retries = 0;  ///< How many times each undo fails first.
  bool undo_throws = false;        ///< It fails by throwing.
  bool undo_waits = false;         ///< Each undo waits for an answer,
  bool undo_wants_event = false;   ///< or, instead, for an event,
  bool undo_wants_signal = false;  ///< or, instead, for a signal.
  bool undo_offloads = false;      ///< Each undo offloads work and does not wait for it.

  [[nodiscard]] std::string name() const { return "task " + std::to_string(index); }
};

/// How the whole tree below a root may end.
struct TreeFate {
  bool may_succeed = true;
  bool may_fail = false;
  bool may_park = false;
  bool may_wait_in_a_cycle = false;
};

/// All the tasks of one run.
struct TaskPlan {
  std::vector<TaskSpec> tasks;  ///< By index; a parent before its children.
  std::vector<std::size_t> roots;
  std::uint32_t undo_attempts = 16;  ///< In the executor's retry policy.
  std::uint32_t max_attempts = 0;    ///< In the policy too: after this many attempts a step parks.
  /// What operators do with what is parked at the end.
  enum class Ending : std::uint8_t { kLeave, kMend, kSkip, kBypass };
  Ending ending = Ending::kLeave;
  std::size_t orders = 0;          ///< How many orders operators give before the end.
  std::size_t max_signals = 1024;  ///< Of the executor.
  bool signals = false;            ///< Whether senders send any.
  bool limits_types = false;
  bool limits_keys = false;
  std::size_t max_live = 0;  ///< Of the executor; 0: no limit. A limit may leave spawns no room.
  std::uint64_t seed = 0;    ///< The seed of this plan.
  std::size_t throws = 0;    ///< How often a constructor throws: too rarely to park anything.

  /// Returns a task that does nothing when there is no such index: for submissions that will be
  /// refused.
  [[nodiscard]] const TaskSpec& task(std::size_t index) const {
    static const TaskSpec nothing;
    return index < tasks.size() ? tasks[index] : nothing;
  }
  /// `aborted`: whether the tree may have been aborted.
  [[nodiscard]] TreeFate fate(std::size_t root, bool aborted) const;
  /// Whether several members of this tree may be in the middle of their undo at the same time:
  /// children that are undone concurrently, or domains that are undone by themselves. A turn of an
  /// undo that has begun goes on when a wider domain fails, also if another member is parked then.
  [[nodiscard]] bool has_concurrent_undos(std::size_t root) const;
  /// Whether a task is `other` or below it.
  [[nodiscard]] bool is_within(std::size_t task, std::size_t other) const;
  /// The domain, which fails as a whole, of a task: the index of a root, or of a child that
  /// reports.
  [[nodiscard]] std::size_t domain_of(std::size_t task) const;
  /// The domain around that of `head`: SIZE_MAX for a root.
  [[nodiscard]] std::size_t domain_around(std::size_t head) const;
  /// Whether a task in this domain, and in no domain within it, fails for good if it runs.
  [[nodiscard]] bool fails_by_itself(std::size_t head) const;
  /// Whether a task ends with a domain within its tree that fails by itself.
  [[nodiscard]] bool fails_and_is_reported(std::size_t task) const;
  /// The indices of a tree, the root first.
  [[nodiscard]] std::vector<std::size_t> tree(std::size_t root) const;
};

[[nodiscard]] TaskPlan plan_tasks(std::uint64_t seed);

/// "task 3: RETRY x2, SPAWN(4, 5), ... locks ..."
[[nodiscard]] std::string in_words(const TaskPlan& plan, std::size_t task);

}  // namespace pv2::testing
