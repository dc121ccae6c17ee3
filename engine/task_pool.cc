// SPDX-License-Identifier: Apache-2.0
//
// Three queues, and threads that take from them one by one; or one queue, and a host that does.

#include "task_pool.h"

#include <pv2/base/assert.h>
#include <pv2/base/mutex.h>
#include <pv2/base/thread.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

namespace pv2 {
namespace {

thread_local const EngineThread* innermost = nullptr;

void run_guarded(const void* engine, Task& task) noexcept {
  const EngineThread mark(engine);
  try {
    task();
  } catch (...) {  // NOLINT(bugprone-empty-catch): offloaded work catches its own; this is a host's
                   // callback
  }
}

class ThreadedPool final : public TaskPool {
 public:
  ThreadedPool(unsigned threads, const void* engine) : engine_(engine), count_(threads) {
    for (unsigned i = 0; i < threads && started_.ok(); ++i) start([this] { work(); });
    if (started_.ok()) start([this] { stand_in(); });
    if (started_.ok()) start([this] { tell_news(); });
  }
  ~ThreadedPool() override { drain_and_stop(); }

  void post(Task task) override { post_all(std::span(&task, 1)); }
  void post_all(std::span<Task> tasks) override {
    std::size_t wakes = 0;
    bool wake_stand_in = false;
    bool taken = false;
    {
      MutexLock lock(tasks_mutex_);
      taken = !stopped_;
      if (taken) {
        for (Task& task : tasks) tasks_.push_back(std::move(task));
        const bool nobody_may = needs_stand_in();
        wakes = nobody_may ? 0 : sleepers_.claim(tasks.size());
        wake_stand_in = nobody_may && stand_in_.claim(1) != 0;
      }
    }
    for (; wakes != 0; --wakes) sleepers_.arrived.notify_one();
    if (wake_stand_in) stand_in_.arrived.notify_one();
    if (taken) return;
    for (Task& task : tasks) run_guarded(engine_, task);
  }
  void post_blocking(Task task) override {
    bool wake = false;
    {
      MutexLock lock(tasks_mutex_);
      if (!stopped_) {
        blocking_.push_back(std::move(task));
        wake = sleepers_.claim(1) != 0;
      }
    }
    if (wake) sleepers_.arrived.notify_one();
    if (task) run_guarded(engine_, task);  // NOLINT(bugprone-use-after-move): stopped, still here
  }
  void post_news(Task task) override {
    bool wake = false;
    {
      MutexLock lock(tasks_mutex_);
      if (!stopped_ || telling_) {  // the teller looks again when it has ended what it tells
        news_.push_back(std::move(task));
        wake = teller_.claim(1) != 0;
      }
    }
    if (wake) teller_.arrived.notify_one();
    if (task) run_guarded(engine_, task);  // NOLINT(bugprone-use-after-move): stopped, still here
  }
  [[nodiscard]] const Status& started() const noexcept override { return started_; }
  [[nodiscard]] std::size_t unfinished() const override {
    MutexLock lock(tasks_mutex_);
    return running_ + tasks_.size() + blocking_.size() + news_.size();
  }
  void drain_and_stop() override {
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

 private:
  void start(std::function<void()> run) {
    auto thread = start_thread("the pool of the executor", std::move(run));
    started_ = thread.status();
    if (thread.ok()) threads_.push_back(*std::move(thread));
  }

  // Threads that sleep. Whoever signals takes a sleeper off the count, so that nobody is signalled
  // twice. Guarded by tasks_mutex_.
  struct Sleepers {
    CondVar arrived;
    std::size_t sleeping = 0;
    std::size_t signalled = 0;

    std::size_t claim(std::size_t most) {
      const std::size_t claimed = std::min(most, sleeping);
      sleeping -= claimed;
      signalled += claimed;
      return claimed;
    }
    void sleep(Mutex& mutex) PV2_REQUIRES(mutex) {
      ++sleeping;
      arrived.wait(mutex);
      PV2_ASSERT(signalled != 0 || sleeping != 0, "who wakes up was asleep");
      signalled != 0 ? --signalled : --sleeping;
    }
  };

  // Whether callbacks have no thread but that which stands in: all others are busy, or as many of
  // them as may be are in callbacks.
  [[nodiscard]] bool needs_stand_in() const PV2_REQUIRES(tasks_mutex_) {
    return blocked_ + calling_ == count_ || calling_ + 1 == count_;
  }
  [[nodiscard]] bool may_call() const PV2_REQUIRES(tasks_mutex_) {
    return !tasks_.empty() && (calling_ + 1 < count_ || stopped_);
  }

  // One task at a time: it may block, and those behind it are for the other threads then. What is
  // called blocking goes first, as for the rest there is always somebody.
  void work() {
    enum class Did : std::uint8_t { kNothing, kWork, kCall };
    for (Did did = Did::kNothing;;) {
      Task task;
      {
        MutexLock lock(tasks_mutex_);
        PV2_ASSERT(did == Did::kNothing || running_ != 0, "a task that has ended was running");
        PV2_ASSERT(did != Did::kWork || blocked_ != 0, "work that has ended was counted");
        PV2_ASSERT(did != Did::kCall || calling_ != 0, "a call that has ended was counted");
        if (did != Did::kNothing) --running_;
        if (did == Did::kWork) --blocked_;
        if (did == Did::kCall) --calling_;
        PV2_ASSERT(blocked_ + calling_ < count_, "a thread that looks for a task is in none");
        while (blocking_.empty() && !may_call() && !stopped_) sleepers_.sleep(tasks_mutex_);
        if (blocking_.empty() && tasks_.empty()) return;
        did = blocking_.empty() ? Did::kCall : Did::kWork;
        task = take(did == Did::kWork ? blocking_ : tasks_);
        ++running_;
        ++(did == Did::kWork ? blocked_ : calling_);
        // Whoever was signalled for what is left may have been this thread.
        const bool leaves_tasks = needs_stand_in() && !tasks_.empty();
        if (leaves_tasks && stand_in_.claim(1) != 0) stand_in_.arrived.notify_one();
      }
      run_guarded(engine_, task);
    }
  }
  // Once a thread comes back that may, that one takes what is left, in the same critical section.
  void stand_in() {
    for (std::size_t ran = 0;;) {
      Task task;
      {
        MutexLock lock(tasks_mutex_);
        PV2_ASSERT(running_ >= ran, "a task that has ended was running");
        running_ -= std::exchange(ran, 1);
        while (!stopped_ && (!needs_stand_in() || tasks_.empty())) stand_in_.sleep(tasks_mutex_);
        if (tasks_.empty()) return;
        task = take(tasks_);
        ++running_;
      }
      run_guarded(engine_, task);
    }
  }
  void tell_news() {
    for (;;) {
      Task task;
      {
        MutexLock lock(tasks_mutex_);
        PV2_ASSERT(!telling_ || running_ != 0, "news that were told were counted");
        if (std::exchange(telling_, false)) --running_;
        while (!stopped_ && news_.empty()) teller_.sleep(tasks_mutex_);
        if (news_.empty()) return;
        task = take(news_);
        telling_ = true;
        ++running_;
      }
      run_guarded(engine_, task);
    }
  }
  static Task take(std::deque<Task>& tasks) {
    PV2_ASSERT(!tasks.empty(), "a task is taken where there is one");
    Task task = std::move(tasks.front());
    tasks.pop_front();
    return task;
  }

  const void* engine_;
  const std::size_t count_;  // of those that take blocking work
  mutable Mutex tasks_mutex_;
  std::deque<Task> tasks_ PV2_GUARDED_BY(tasks_mutex_);
  std::deque<Task> blocking_ PV2_GUARDED_BY(tasks_mutex_);
  std::deque<Task> news_ PV2_GUARDED_BY(tasks_mutex_);
  std::size_t running_ PV2_GUARDED_BY(tasks_mutex_) = 0;  // tasks
  // Of the `count_` threads: those in blocking work, and those in callbacks.
  std::size_t blocked_ PV2_GUARDED_BY(tasks_mutex_) = 0;
  std::size_t calling_ PV2_GUARDED_BY(tasks_mutex_) = 0;
  Sleepers sleepers_;
  Sleepers stand_in_;
  Sleepers teller_;
  bool telling_ PV2_GUARDED_BY(tasks_mutex_) = false;
  bool stopped_ PV2_GUARDED_BY(tasks_mutex_) = false;
  Status started_;                    // constant
  std::vector<std::thread> threads_;  // last: they use what stands above
};

class ManualPool final : public TaskPool {
 public:
  explicit ManualPool(const void* engine) : engine_(engine) {}

  void post(Task task) override {
    {
      MutexLock lock(tasks_mutex_);
      if (!stopped_ || draining_) {
        tasks_.push_back(std::move(task));
        return;
      }
    }
    run_guarded(engine_, task);
  }
  void post_blocking(Task task) override { post(std::move(task)); }
  void post_news(Task task) override { post(std::move(task)); }
  void post_all(std::span<Task> tasks) override {
    for (Task& task : tasks) post(std::move(task));
  }
  bool run_one() override {
    Task task;
    {
      MutexLock lock(tasks_mutex_);
      if (tasks_.empty()) return false;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    run_guarded(engine_, task);
    return true;
  }
  [[nodiscard]] std::size_t unfinished() const override {
    MutexLock lock(tasks_mutex_);
    return tasks_.size();
  }
  void drain_and_stop() override {
    {
      MutexLock lock(tasks_mutex_);
      stopped_ = draining_ = true;
    }
    do {
      while (run_one()) {
      }
    } while (!has_drained());
  }

 private:
  // Whoever posts after that runs it himself.
  bool has_drained() {
    MutexLock lock(tasks_mutex_);
    if (tasks_.empty()) draining_ = false;
    return !draining_;
  }

  const void* engine_;
  mutable Mutex tasks_mutex_;
  std::deque<Task> tasks_ PV2_GUARDED_BY(tasks_mutex_);
  bool stopped_ PV2_GUARDED_BY(tasks_mutex_) = false;
  bool draining_ PV2_GUARDED_BY(tasks_mutex_) = false;
};

}  // namespace

std::unique_ptr<TaskPool> TaskPool::make(unsigned threads, const void* engine) {
  if (threads == 0) return std::make_unique<ManualPool>(engine);
  return std::make_unique<ThreadedPool>(threads, engine);
}

EngineThread::EngineThread(const void* engine) noexcept : engine_(engine), outer_(innermost) {
  innermost = this;
}
EngineThread::~EngineThread() { innermost = outer_; }
bool EngineThread::belongs_to(const void* engine) noexcept {
  const EngineThread* mark = innermost;
  while (mark != nullptr && mark->engine_ != engine) mark = mark->outer_;
  return mark != nullptr;
}

}  // namespace pv2
