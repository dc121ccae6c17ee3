// SPDX-License-Identifier: Apache-2.0
//
// A thread takes one task at a time. The task may block for any time; the other threads take the
// tasks behind it.

#include "core/threaded_pool.h"

#include <pv2/base/assert.h>
#include <pv2/base/thread.h>

#include <algorithm>
#include <deque>
#include <span>
#include <utility>

#include "core/run_task.h"

namespace pv2 {
namespace {

// The tasks of one stopped pool that this thread runs. A task may post further tasks, such as the
// refusal of what a callback asks for. The thread runs these after the task has returned. So a host
// that goes on after each refusal needs no more stack than one callback.
struct LateTasks {
  const void* engine;
  LateTasks* outer;
  std::deque<Task> tasks{};
};
thread_local LateTasks* late_tasks = nullptr;

void run_late(const void* engine, std::span<Task> tasks) {
  LateTasks* around = late_tasks;
  while (around != nullptr && around->engine != engine) around = around->outer;
  if (around != nullptr) {
    for (Task& task : tasks) around->tasks.push_back(std::move(task));
    return;
  }
  LateTasks late{engine, late_tasks};
  late_tasks = &late;
  for (Task& task : tasks) late.tasks.push_back(std::move(task));
  while (!late.tasks.empty()) {
    Task task = std::move(late.tasks.front());
    late.tasks.pop_front();
    run_task(engine, task);
  }
  late_tasks = late.outer;
}

}  // namespace

namespace {

Task take(std::deque<Task>& tasks) {
  PV2_ASSERT(!tasks.empty(), "the queue that a task is taken from is not empty");
  Task task = std::move(tasks.front());
  tasks.pop_front();
  return task;
}

}  // namespace

ThreadedPool::ThreadedPool(unsigned threads, const void* engine)
    : engine_(engine), count_(threads) {
  for (unsigned i = 0; i < threads && started_.ok(); ++i) start([this] { work(); });
  if (started_.ok()) start([this] { stand_in(); });
  if (started_.ok()) start([this] { tell_news(); });
}

void ThreadedPool::start(std::function<void()> run) {
  auto thread = start_thread("pv2-pool", "the pool of the executor", std::move(run));
  started_ = thread.status();
  if (thread.ok()) threads_.push_back(*std::move(thread));
}

std::size_t ThreadedPool::Sleepers::claim(std::size_t most) {
  const std::size_t claimed = std::min(most, sleeping);
  sleeping -= claimed;
  signalled += claimed;
  return claimed;
}

void ThreadedPool::Sleepers::sleep(Mutex& mutex) {
  ++sleeping;
  arrived.wait(mutex);
  PV2_ASSERT(signalled != 0 || sleeping != 0, "a thread that wakes up was asleep");
  signalled != 0 ? --signalled : --sleeping;
}

void ThreadedPool::post_all(std::span<Task> tasks) {
  std::size_t wakes = 0;
  bool wake_stand_in = false;
  bool taken = false;
  {
    MutexLock lock(tasks_mutex_);
    taken = !stopped_;
    if (taken) {
      for (Task& task : tasks) tasks_.push_back(std::move(task));
      const bool no_other_may = needs_stand_in();
      wakes = no_other_may ? 0 : sleepers_.claim(tasks.size());
      wake_stand_in = no_other_may && stand_in_.claim(1) != 0;
    }
  }
  for (; wakes != 0; --wakes) sleepers_.arrived.notify_one();
  if (wake_stand_in) stand_in_.arrived.notify_one();
  if (!taken) run_late(engine_, tasks);
}

void ThreadedPool::post_blocking(Task task) {
  bool wake = false;
  {
    MutexLock lock(tasks_mutex_);
    if (!stopped_) {
      blocking_.push_back(std::move(task));
      wake = sleepers_.claim(1) != 0;
    }
  }
  if (wake) sleepers_.arrived.notify_one();
  if (task) run_late(engine_, std::span(&task, 1));  // NOLINT(bugprone-use-after-move): stopped
}

void ThreadedPool::post_news(Task task) {
  bool wake = false;
  {
    MutexLock lock(tasks_mutex_);
    if (!stopped_ || telling_) {  // the teller looks for another task after its last one
      news_.push_back(std::move(task));
      wake = teller_.claim(1) != 0;
    }
  }
  if (wake) teller_.arrived.notify_one();
  if (task) run_late(engine_, std::span(&task, 1));  // NOLINT(bugprone-use-after-move): stopped
}

std::size_t ThreadedPool::unfinished() const {
  MutexLock lock(tasks_mutex_);
  return running_ + tasks_.size() + blocking_.size() + news_.size();
}

void ThreadedPool::drain_and_stop() {
  {
    MutexLock lock(tasks_mutex_);
    stopped_ = true;
  }
  sleepers_.arrived.notify_all();
  stand_in_.arrived.notify_all();
  teller_.arrived.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

// Whether only the thread that stands in may take a callback: all others are busy, or all but one
// of them are in callbacks.
bool ThreadedPool::needs_stand_in() const {
  return blocked_ + calling_ == count_ || calling_ + 1 == count_;
}

// Whether there is a callback that a thread for blocking work may take. A pool that stops has no
// limit.
bool ThreadedPool::may_call() const {
  return !tasks_.empty() && (calling_ + 1 < count_ || stopped_);
}

void ThreadedPool::work() {
  for (Kind ended = Kind::kNothing;;) {
    Next next;
    {
      MutexLock lock(tasks_mutex_);
      next = next_after(ended);
    }
    if (next.kind == Kind::kNothing) return;
    run_task(engine_, next.task);
    ended = next.kind;
  }
}

// Waits for the next task of a thread for blocking work. kNothing: the pool stops and no task is
// left. Blocking work goes first, because callbacks always have a thread that may take them.
ThreadedPool::Next ThreadedPool::next_after(Kind ended) {
  count_ended(ended);
  PV2_ASSERT(blocked_ + calling_ < count_, "a thread that looks for a task runs none");
  while (blocking_.empty() && !may_call() && !stopped_) sleepers_.sleep(tasks_mutex_);
  if (blocking_.empty() && tasks_.empty()) return {};
  Next next;
  next.kind = blocking_.empty() ? Kind::kCall : Kind::kWork;
  next.task = take(next.kind == Kind::kWork ? blocking_ : tasks_);
  ++running_;
  ++(next.kind == Kind::kWork ? blocked_ : calling_);
  // This thread may have been woken for callbacks that it does not take.
  const bool leaves_tasks = needs_stand_in() && !tasks_.empty();
  if (leaves_tasks && stand_in_.claim(1) != 0) stand_in_.arrived.notify_one();
  return next;
}

void ThreadedPool::count_ended(Kind ended) {
  if (ended == Kind::kNothing) return;
  std::size_t& busy = ended == Kind::kWork ? blocked_ : calling_;
  PV2_ASSERT(running_ != 0 && busy != 0, "a task that has ended was counted");
  --running_;
  --busy;
}

// Goes back to sleep when another thread may take callbacks again. That thread looks for callbacks
// in the critical section in which it ends its task, so none is left behind.
void ThreadedPool::stand_in() {
  for (std::size_t ran = 0;;) {
    Task task;
    {
      MutexLock lock(tasks_mutex_);
      PV2_ASSERT(running_ >= ran, "a task that has ended was counted");
      running_ -= std::exchange(ran, 1);
      while (!stopped_ && (!needs_stand_in() || tasks_.empty())) stand_in_.sleep(tasks_mutex_);
      if (tasks_.empty()) return;
      task = take(tasks_);
      ++running_;
    }
    run_task(engine_, task);
  }
}

void ThreadedPool::tell_news() {
  for (;;) {
    Task task;
    {
      MutexLock lock(tasks_mutex_);
      PV2_ASSERT(!telling_ || running_ != 0, "a task that has ended was counted");
      if (std::exchange(telling_, false)) --running_;
      while (!stopped_ && news_.empty()) teller_.sleep(tasks_mutex_);
      if (news_.empty()) return;
      task = take(news_);
      telling_ = true;
      ++running_;
    }
    run_task(engine_, task);
  }
}

}  // namespace pv2
