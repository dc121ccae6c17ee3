// SPDX-License-Identifier: Apache-2.0
//
// Each run first draws a mood, which decides what can occur in it at all, so that runs differ in
// kind.

#include "simulation/task_spec.h"

#include <algorithm>
#include <array>

namespace pv2::testing {
namespace {

using Does = StepSpec::Does;

struct Mood {
  bool fails;
  bool waits;
  bool retries;
  bool locks;
  bool child_locks;
  bool step_locks;
  bool trees;
  bool parks;
  bool rows;
  bool signals;
  bool events;
  bool reports;
  bool beside;
  bool bounded;
  bool bare;
};

bool one_in(Random& random, std::uint64_t n) { return random.below(n) == 0; }

class Planner {
 public:
  explicit Planner(std::uint64_t seed) : random_(seed * 2654435761U + 17) {
    mood_ = {.fails = one_in(random_, 2),
             .waits = !one_in(random_, 3),
             .retries = one_in(random_, 2),
             .locks = one_in(random_, 2),
             .child_locks = one_in(random_, 2),
             .step_locks = one_in(random_, 2),
             .trees = !one_in(random_, 3),
             .parks = one_in(random_, 4),
             .rows = !one_in(random_, 3),
             .signals = one_in(random_, 3),
             .events = one_in(random_, 3),
             .reports = one_in(random_, 3),
             .beside = one_in(random_, 2),
             .bounded = one_in(random_, 4),
             .bare = one_in(random_, 3)};
  }

  TaskPlan plan() {
    plan_.undo_attempts = mood_.parks ? 3 : 16;
    plan_.signals = mood_.signals;
    if (mood_.signals && one_in(random_, 4)) plan_.max_signals = 3;  // as many as a step takes
    plan_.max_attempts = mood_.bounded ? 2 : 0;
    if (one_in(random_, 3)) plan_.orders = 1 + random_.below(8);
    plan_.ending = static_cast<TaskPlan::Ending>(random_.below(4));
    keeps_locks_ = mood_.locks && (!mood_.parks || one_in(random_, 3));
    plan_.limits_types = !mood_.parks && !mood_.bounded && one_in(random_, 5);
    const std::size_t roots = 1 + random_.below(5);
    for (std::size_t i = 0; i < roots; ++i) plan_.roots.push_back(add(SIZE_MAX, SIZE_MAX, 0));
    plan_.limits_keys = keeps_locks_ && one_in(random_, 2);
    if (one_in(random_, 3)) limit_room();
    return std::move(plan_);
  }

 private:
  // A procedure that spawns gets room only when another tree has ended. So at most one tree spawns,
  // and nothing keeps the others alive.
  void limit_room() {
    std::size_t most = 0;
    std::size_t spawning = 0;
    for (const std::size_t root : plan_.roots) {
      const std::size_t size = plan_.tree(root).size();
      spawning += size > 1 ? 1 : 0;
      most = std::max(most, size);
    }
    const bool all_end = !keeps_locks_ && !mood_.parks && !mood_.bounded && !plan_.limits_types;
    if (spawning == 0) {
      plan_.max_live = 2;
    } else if (spawning == 1 && plan_.roots.size() > 1 && all_end) {
      plan_.max_live = most + plan_.roots.size() - 2;
    }
  }

  std::size_t add(std::size_t root, std::size_t parent, std::size_t depth) {
    const std::size_t index = plan_.tasks.size();
    plan_.tasks.emplace_back();
    TaskSpec task;
    task.index = index;
    task.root = root == SIZE_MAX ? index : root;
    task.parent = root == SIZE_MAX ? index : parent;
    task.reports = depth > 0 && mood_.reports && one_in(random_, 2);
    task.beside = depth > 0 && mood_.beside && !one_in(random_, 4);
    if (mood_.parks && one_in(random_, 4)) task.kind = TaskSpec::Kind::kCommitting;
    if (mood_.bare && one_in(random_, 2)) {
      task.kind = one_in(random_, 2) ? TaskSpec::Kind::kPlain : TaskSpec::Kind::kLate;
    }
    if (depth > 0 && one_in(random_, 5)) task.kind = TaskSpec::Kind::kFinal;
    const std::size_t steps = 1 + random_.below(5);
    for (std::size_t i = 0; i < steps; ++i) task.steps.push_back(step());
    if (mood_.trees && depth < 2 && one_in(random_, depth + 1)) {
      task.steps[random_.below(steps)] = {.does = Does::kSpawn};
      const std::size_t children = 1 + random_.below(3);
      for (std::size_t i = 0; i < children; ++i) {
        task.children.push_back(add(task.root, index, depth + 1));
      }
    }
    // A cycle of waiting trees beyond a point of no return is never opened.
    const bool child_locks = mood_.child_locks && !mood_.parks;
    if (keeps_locks_ && (depth == 0 || child_locks)) task.locks = locks(depth == 0);
    constexpr std::array kPriorities{Priority::kLow, Priority::kNormal, Priority::kHigh};
    task.priority = kPriorities[random_.below(kPriorities.size())];
    if (mood_.retries && one_in(random_, 3)) {
      task.undo_retries = static_cast<std::uint32_t>(1 + random_.below(3));
      task.undo_throws = one_in(random_, 2);
    }
    task.undo_waits = mood_.waits && one_in(random_, 4);
    // When a wider failure plans an undo again, it forgets which event the undo waited for.
    task.undo_wants_event = task.undo_waits && mood_.events && !mood_.reports && one_in(random_, 2);
    task.undo_wants_signal = task.undo_waits && mood_.signals && one_in(random_, 2);
    task.undo_offloads = mood_.waits && one_in(random_, 5);
    plan_.tasks[index] = std::move(task);
    return index;
  }

  StepSpec step() {
    StepSpec step;
    step.writes_row = mood_.rows && one_in(random_, 2);
    step.times = static_cast<std::uint32_t>(1 + random_.below(3));
    step.patience = std::chrono::milliseconds(std::int64_t{1} << random_.below(18));
    switch (random_.below(12)) {
      case 0:
        if (mood_.retries) step.does = Does::kRetry;
        step.unsure = one_in(random_, 2);
        break;
      case 1:
        if (mood_.waits) step.does = mood_.signals ? Does::kSignal : Does::kAwait;
        step.retries = mood_.retries && one_in(random_, 3);
        if (step.does == Does::kAwait && mood_.events && one_in(random_, 2)) {
          step.does = Does::kEvent;
        }
        break;
      case 2:
        if (mood_.waits) step.does = Does::kTimedWait;
        break;
      case 3:
        if (!mood_.waits) break;
        step.does = Does::kAwaitOrTime;
        if (mood_.signals && one_in(random_, 2)) step.does = Does::kSignalOrTime;
        if (mood_.events && one_in(random_, 2)) step.does = Does::kEventOrTime;
        break;
      case 4:
        if (!mood_.waits) break;
        step.does = one_in(random_, 3) ? Does::kOffload : Does::kOffloadOrTime;
        step.retries = mood_.retries && one_in(random_, 2);
        step.beside_earlier = one_in(random_, 3);
        break;
      case 5:
        if (mood_.retries) step.does = Does::kAgain;
        break;
      case 6:
        if (mood_.fails) step.does = one_in(random_, 3) ? Does::kThrow : Does::kFail;
        break;
      default:
        break;
    }
    return step;
  }

  LockSet locks(bool is_root) {
    LockSet set;
    const auto mode = [this] {
      return one_in(random_, 2) ? LockMode::kShared : LockMode::kExclusive;
    };
    const std::size_t keys = random_.below(4);
    for (std::size_t i = 0; i < keys; ++i) {
      const std::string name(1, static_cast<char>('a' + random_.below(3)));
      switch (random_.below(4)) {
        case 0:
          set.table("ns", name, mode());
          break;
        case 1:
          set.region("ns", name, "r", mode());
          break;
        case 2:
          set.server(name, mode());
          break;
        default:
          set.key({ResourceClass::kHostFirst, name}, mode());
      }
    }
    // Not where siblings could exclude each other: the undo of a step that holds its locks only for
    // itself does not pass a sibling that keeps them to its end.
    if (mood_.step_locks && (is_root || !mood_.child_locks) && one_in(random_, 2)) {
      set.scope(one_in(random_, 2) ? LockScope::kStep : LockScope::kVisit);
    }
    return set;
  }

  Random random_;
  Mood mood_{};
  bool keeps_locks_ = false;  // rare where trees park, because a parked tree keeps others out
  TaskPlan plan_;
};

}  // namespace

TaskPlan plan_tasks(std::uint64_t seed) {
  TaskPlan plan = Planner(seed).plan();
  plan.seed = seed;
  // A throw ends the wait of its step, which asks again after the back-off. The story knows which
  // runs waited when an event was set, but not which of them threw.
  const bool events = std::ranges::any_of(plan.tasks, [](const TaskSpec& task) {
    return task.undo_wants_event || std::ranges::any_of(task.steps, [](const StepSpec& step) {
             return step.does == Does::kEvent || step.does == Does::kEventOrTime;
           });
  });
  const bool throws = seed % 3 == 0 && !events;
  plan.throws = throws ? std::min<std::size_t>(6, plan.undo_attempts - 1) : 0;
  return plan;
}

std::vector<std::size_t> TaskPlan::tree(std::size_t root) const {
  std::vector<std::size_t> members;
  for (const TaskSpec& task : tasks) {
    if (task.root == root) members.push_back(task.index);
  }
  return members;
}

bool TaskPlan::is_within(std::size_t task, std::size_t other) const {
  while (task != other && tasks[task].root != task) task = tasks[task].parent;
  return task == other;
}

bool TaskPlan::has_concurrent_undos(std::size_t root) const {
  const auto members = tree(root);
  const auto beside = [this](std::size_t index) { return tasks[index].beside; };
  if (std::any_of(members.begin(), members.end(), beside)) return true;
  // Two tasks that report, neither of which is within the other.
  for (const std::size_t one : members) {
    for (const std::size_t other : members) {
      const bool both = one != other && tasks[one].reports && tasks[other].reports;
      if (both && !is_within(one, other) && !is_within(other, one)) return true;
    }
  }
  return false;
}

std::size_t TaskPlan::domain_of(std::size_t task) const {
  while (tasks[task].root != task && !tasks[task].reports) task = tasks[task].parent;
  return task;
}

std::size_t TaskPlan::domain_around(std::size_t head) const {
  return tasks[head].root == head ? SIZE_MAX : domain_of(tasks[head].parent);
}

bool TaskPlan::fails_by_itself(std::size_t head) const {
  return std::any_of(tasks.begin(), tasks.end(), [&](const TaskSpec& task) {
    return domain_of(task.index) == head &&
           std::any_of(task.steps.begin(), task.steps.end(), [](const StepSpec& step) {
             return step.does == Does::kFail || step.does == Does::kThrow;
           });
  });
}

bool TaskPlan::fails_and_is_reported(std::size_t task) const {
  for (std::size_t head = domain_of(task); head != tasks[task].root; head = domain_around(head)) {
    if (fails_by_itself(head)) return true;
  }
  return false;
}

TreeFate TaskPlan::fate(std::size_t root, bool aborted) const {
  TreeFate fate{.may_fail = aborted};
  bool commits = false;
  bool has_loose_siblings = false;
  fate.may_succeed = !fails_by_itself(root);
  bool reports_failure = false;
  for (const std::size_t index : tree(root)) {
    const TaskSpec& task = tasks[index];
    for (const StepSpec& step : task.steps) {
      const bool gives_up = step.does == Does::kRetry && step.times >= max_attempts;
      if (max_attempts != 0 && gives_up) fate.may_park = true;
    }
    reports_failure = reports_failure || (task.reports && fails_by_itself(index));
    // A cycle of waiting trees is opened by undoing one of them.
    if (index != root && !task.locks.empty()) fate.may_wait_in_a_cycle = true;
    commits = commits || task.kind == TaskSpec::Kind::kCommitting;
    // Once it has finished, the undos of its children exclude each other from what they shared.
    const bool covers = !task.locks.empty() && task.children.size() > 1;
    has_loose_siblings = has_loose_siblings || (covers && task.kind >= TaskSpec::Kind::kPlain);
  }
  fate.may_wait_in_a_cycle = fate.may_wait_in_a_cycle || limits_types;
  fate.may_fail = fate.may_fail || !fate.may_succeed || fate.may_wait_in_a_cycle;
  for (const std::size_t index : tree(root)) {
    if ((fate.may_fail || reports_failure) &&
        (commits || has_loose_siblings || tasks[index].undo_retries + 1 >= undo_attempts)) {
      fate.may_park = true;
    }
  }
  return fate;
}

std::string in_words(const TaskPlan& plan, std::size_t index) {
  constexpr std::array kNames{"plain",      "SPAWN",          "RETRY",   "AWAIT",
                              "TIMED_WAIT", "AWAIT_OR_TIME",  "OFFLOAD", "OFFLOAD_OR_TIME",
                              "SIGNAL",     "SIGNAL_OR_TIME", "EVENT",   "EVENT_OR_TIME",
                              "AGAIN",      "FAIL",           "THROW"};
  constexpr std::array kKinds{"", " final", " committing", " plain", " late"};
  const TaskSpec& task = plan.tasks[index];
  std::string words = task.name() + kKinds[static_cast<std::size_t>(task.kind)] + " [";
  for (const StepSpec& step : task.steps) {
    if (words.back() != '[') words += ", ";
    words += kNames[static_cast<std::size_t>(step.does)];
    if (step.does == Does::kEvent || step.does == Does::kEventOrTime) {
      words += " " + std::to_string(step.times % 2);
    }
    if (step.does == Does::kRetry || step.does == Does::kAgain || step.does == Does::kSignal) {
      words += " x" + std::to_string(step.times);
    }
    if (step.does == Does::kRetry && step.unsure) words += " unsure";
    const bool may_retry = step.does == Does::kSignal || step.does == Does::kOffloadOrTime;
    if (may_retry && step.retries) words += " retried";
    if (step.beside_earlier) words += " beside";
    if (step.writes_row) words += " +row";
    if (step.does != Does::kSpawn) continue;
    words += "(";
    for (const std::size_t child : task.children) {
      if (words.back() != '(') words += "; ";
      words += in_words(plan, child);
    }
    words += ")";
  }
  words += "]";
  for (const LockRequest& lock : task.locks.requests()) {
    words += " " + to_string(lock.key) + "/" + std::string(to_string(lock.mode));
  }
  if (!task.locks.empty() && task.locks.scope() == LockScope::kStep) words += " by step";
  if (!task.locks.empty() && task.locks.scope() == LockScope::kVisit) words += " by visit";
  if (task.undo_offloads) words += " undo offloads";
  if (task.undo_retries > 0) words += " undo retried x" + std::to_string(task.undo_retries);
  if (task.undo_waits) {
    words += task.undo_wants_event    ? " undo awaits event"
             : task.undo_wants_signal ? " undo wants signal"
                                      : " undo waits";
  }
  if (task.reports) words += " reports";
  if (task.beside) words += " undone beside";
  return words;
}

}  // namespace pv2::testing
