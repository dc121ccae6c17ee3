// SPDX-License-Identifier: Apache-2.0
//
// Mutex, MutexLock and CondVar: the standard ones with the annotations that let clang prove that
// guarded data is touched only under its lock. g++ sees empty macros. A mutex is named for what it
// guards.

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#if defined(__clang__)
#define PV2_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define PV2_THREAD_ANNOTATION(x)
#endif

#define PV2_CAPABILITY(name) PV2_THREAD_ANNOTATION(capability(name))
#define PV2_SCOPED_CAPABILITY PV2_THREAD_ANNOTATION(scoped_lockable)
/// This datum is read and written only while the mutex is held.
#define PV2_GUARDED_BY(mutex) PV2_THREAD_ANNOTATION(guarded_by(mutex))
/// What this pointer points to is touched only while the mutex is held.
#define PV2_PT_GUARDED_BY(mutex) PV2_THREAD_ANNOTATION(pt_guarded_by(mutex))
/// The caller holds the mutex.
#define PV2_REQUIRES(...) PV2_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
/// The caller does not hold the mutex; this function takes it.
#define PV2_EXCLUDES(...) PV2_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define PV2_ACQUIRE(...) PV2_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define PV2_RELEASE(...) PV2_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define PV2_TRY_ACQUIRE(...) PV2_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
/// The lock order, where it is fixed (docs/concurrency.md).
#define PV2_ACQUIRED_BEFORE(...) PV2_THREAD_ANNOTATION(acquired_before(__VA_ARGS__))
#define PV2_NO_THREAD_SAFETY_ANALYSIS PV2_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace pv2 {

/// std::mutex with annotations. Not recursive. Thread-safe.
class PV2_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  /// Spins for a while, and yields the CPU now and then, before it blocks the thread: critical
  /// sections here are short, and blocking costs two system calls and 17 to 27 us for a wake-up on
  /// another CPU.
  void lock() PV2_ACQUIRE() {
    if (!mutex_.try_lock()) lock_contended();
  }
  void unlock() PV2_RELEASE() { mutex_.unlock(); }
  bool try_lock() PV2_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class CondVar;
  void lock_contended();
  bool take_between_yields();
  std::mutex mutex_;
  std::atomic<bool> is_awaited_{false};  // a thread yields until it has the mutex
};

/// What the threads of this process have met at all its mutexes, since it began.
struct MutexContention {
  std::uint64_t found_taken = 0;  ///< How often a thread that came to a Mutex found it taken.
  std::uint64_t slept = 0;  ///< How often it was still taken after a while, so the thread slept.
};
/// The counts so far; the two are not read at one moment. Thread-safe.
[[nodiscard]] MutexContention mutex_contention() noexcept;

/// Holds a Mutex for a scope. Owned by one thread.
class PV2_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) PV2_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() PV2_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// A condition variable for Mutex. Callers re-check their condition in a loop. Thread-safe.
class CondVar {
 public:
  void wait(Mutex& mutex) PV2_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  /// Returns false when `timeout` (real time) passed first.
  template <class Rep, class Period>
  bool wait_for(Mutex& mutex, std::chrono::duration<Rep, Period> timeout) PV2_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool notified = condition_.wait_for(lock, timeout) == std::cv_status::no_timeout;
    lock.release();
    return notified;
  }
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace pv2
