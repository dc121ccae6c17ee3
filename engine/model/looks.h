// SPDX-License-Identifier: Apache-2.0
//
// Looks: counts the executions, domains, turns and messages that a thread looks at while it holds
// the state mutex. All other threads wait for that mutex, so a critical section may look at a
// stated number only, however large a tree is. The iterators over members count their own moves, so
// a new loop cannot forget to count. Tests and the simulation read the counters. The engine reads
// them only to decide where a long work pauses.

#pragma once

#include <pv2/base/assert.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace pv2 {

class ProcedureExecutor;

/// The number of looks in one critical section after which a long work pauses. 512 looks take about
/// 25 us when each one misses the caches.
inline constexpr std::size_t kSectionPauses = 512;
/// The simulation fails when a section counts more. A work pauses only between two pieces, and each
/// piece counts less than half as many. docs/operations.md, "Limits", lists the exemptions.
inline constexpr std::size_t kSectionLooksMax = 1024;

/// Of one engine, guarded by its state mutex.
class Looks {
 public:
  /// Counts in the section that this thread is in, if it is in one.
  static void one() noexcept { some(1); }
  static void some(std::size_t count) noexcept {
    if (current != nullptr) current->in_section_ += count;
  }

  /// Called by the thread that has taken the mutex. Returns the argument for end().
  [[nodiscard]] Looks* begin() noexcept {
    in_section_ = 0;
    Looks* const outer = current;
    current = this;
    return outer;
  }
  void end(Looks* outer) noexcept {
    PV2_ASSERT(current == this, "the section that ends is the innermost of its thread");
    total_ += in_section_;
    if (in_section_ > most_) most_ = in_section_;
    current = outer;
  }
  void count_wide() noexcept { ++wide_; }
  /// No other thread can wait for this section, so it counts for total() but not for most().
  void nobody_waits() noexcept {
    total_ += in_section_;
    in_section_ = 0;
  }
  /// Whether a work that may be long may go on in this section.
  [[nodiscard]] bool have_room() const noexcept { return in_section_ < pauses_; }

  /// Looks of this thread in this scope are not counted: they are not the engine's work.
  class Uncounted {
   public:
    Uncounted() noexcept : outer_(std::exchange(current, nullptr)) {}
    ~Uncounted() { current = outer_; }
    Uncounted(const Uncounted&) = delete;
    Uncounted& operator=(const Uncounted&) = delete;

   private:
    Looks* const outer_;
  };

  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  [[nodiscard]] std::size_t most() const noexcept { return most_; }
  [[nodiscard]] std::uint64_t wide() const noexcept { return wide_; }
  void forget() noexcept { total_ = most_ = wide_ = 0; }

  /// kSectionPauses, unless a test wants works to pause more often. Set before an engine is made.
  static inline std::size_t pauses_at = kSectionPauses;

 private:
  // The counter of the section that this thread is in, or nullptr.
  static inline constinit thread_local Looks* current = nullptr;

  const std::size_t pauses_ = pauses_at;
  std::size_t in_section_ = 0;
  std::size_t most_ = 0;
  std::uint64_t total_ = 0;
  std::uint64_t wide_ = 0;
};

/// The looks of an executor since it was opened, or since reset(). For tests.
struct SectionLooks {
  std::uint64_t total = 0;
  std::size_t most = 0;    ///< In one critical section; those of open() do not count.
  std::uint64_t wide = 0;  ///< How many sections were wide (core/state_lock.h).

  [[nodiscard]] static SectionLooks of(const ProcedureExecutor& executor);
  static void reset(const ProcedureExecutor& executor);
  /// Has `call` called, without a lock, whenever a work on a tree has paused and is to go on.
  static void at_each_pause(const ProcedureExecutor& executor, std::function<void()> call);
};

}  // namespace pv2
