// SPDX-License-Identifier: Apache-2.0
//
// What procedures lock: resource keys, and lock sets as data. A lock set is everything that a
// procedure asks for, hierarchy included, sorted in the one global order; it is granted as a whole
// or not at all, persisted, and shown to operators as it is. Nothing here takes a lock: that is the
// scheduler's lock table.

#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pv2/base/block_cache.h"

namespace pv2 {

/// The kinds of things that can be locked, in the global order in which locks are taken. Persisted.
/// Hosts use the numbers from kHostFirst up for kinds of their own.
enum class ResourceClass : std::uint8_t {
  kGlobal = 1,
  kMeta = 2,
  kNamespace = 3,
  kTable = 4,
  kRegion = 5,
  kServer = 6,
  kPeer = 7,
  kType = 8,  ///< A type of procedures, by name, for limits on types. Added by the engine.
  kHostFirst = 64,
};

[[nodiscard]] std::string to_string(ResourceClass cls);

/// One lockable thing: its class and its name within the class.
struct ResourceKey {
  ResourceClass cls = ResourceClass::kGlobal;
  std::string name;

  friend auto operator<=>(const ResourceKey&, const ResourceKey&) = default;
};

/// "table ns:t".
[[nodiscard]] std::string to_string(const ResourceKey& key);

enum class LockMode : std::uint8_t { kShared = 1, kExclusive = 2 };

[[nodiscard]] std::string_view to_string(LockMode mode) noexcept;

/// One entry of a lock set.
struct LockRequest {
  ResourceKey key;
  LockMode mode = LockMode::kShared;

  friend auto operator<=>(const LockRequest&, const LockRequest&) = default;
};

/// The requests of a lock set. Their memory comes from take_block(), because one thread often makes
/// a set and another one frees it.
using LockRequests = std::vector<LockRequest, BlockAllocator<LockRequest>>;

/// For how long a procedure keeps its lock set. Whatever the scope, the procedure keeps its locks
/// while work that it has offloaded runs. Persisted.
///
/// Whatever the scope, an undo keeps its locks through its waits and back-offs until it is over,
/// except that kVisit gives them back while the undo is parked.
enum class LockScope : std::uint8_t {
  kOperation = 1,  ///< From the first step until it ends or is undone, through waits and restarts.
  kStep = 2,       ///< For one step at a time; given back while it waits.
  /// For one visit of a step at a time, through its waits; given back in a back-off, while the
  /// procedure waits for children, and while it is parked.
  kVisit = 3,
};

/// A set of locks in the one global order (class, then name), hierarchy included: asking for a
/// table also asks for its namespace shared, asking for a region also for its table and namespace
/// shared. Asking for the same key twice keeps the stronger mode. A set of more than kMaxRequests
/// can be made, but a procedure that asks for it is refused (kInvalidArgument) when it is submitted
/// or spawned. Keys may be added in any order: n of them take about n log n comparisons and moves.
/// Const methods may be called concurrently.
class LockSet {
 public:
  /// The most locks that a procedure may ask for, including those that the hierarchy adds. The
  /// scheduler counts the locks of an entry in 16 bits, because nearly all entries have a handful;
  /// the one that is left is for a limit on the type.
  static constexpr std::size_t kMaxRequests = 65'534;

  LockSet() = default;
  LockSet(const LockSet& other)
      : requests_(other.requests()), primary_(other.primary_), scope_(other.scope_) {}
  LockSet(LockSet&& other) noexcept
      : requests_(std::move(other.requests_)),
        primary_(std::exchange(other.primary_, 0)),
        tail_(other.take_tail()),
        scope_(other.scope_) {}
  LockSet& operator=(LockSet other) noexcept;
  ~LockSet() = default;

  LockSet& global(std::string_view name, LockMode mode);
  LockSet& meta(LockMode mode);
  LockSet& name_space(std::string_view name, LockMode mode);
  LockSet& table(std::string_view name_space, std::string_view table, LockMode mode);
  LockSet& region(std::string_view name_space, std::string_view table, std::string_view region,
                  LockMode mode);
  LockSet& server(std::string_view name, LockMode mode);
  LockSet& peer(std::string_view name, LockMode mode);
  /// A key as it is, without hierarchy; for the host's own classes.
  LockSet& key(ResourceKey key, LockMode mode);

  /// For how long the set is kept; kOperation unless said otherwise.
  LockSet& scope(LockScope scope);
  [[nodiscard]] LockScope scope() const noexcept { return scope_; }

  [[nodiscard]] bool empty() const noexcept { return !has_tail() && requests_.empty(); }
  /// The requests in the global order, each key once.
  [[nodiscard]] const LockRequests& requests() const& noexcept {
    if (has_tail()) sort_tail();
    return requests_;
  }
  /// For a temporary, by value, so that `for (auto& request : procedure.locks().requests())` is
  /// safe.
  [[nodiscard]] LockRequests requests() && noexcept {
    if (has_tail()) sort_tail();
    return std::move(requests_);
  }
  /// The resource in whose queue the procedure waits: the one asked for first (for a region, its
  /// table). When the set is empty, a key of class kGlobal with an empty name.
  [[nodiscard]] const ResourceKey& primary() const& noexcept;
  [[nodiscard]] ResourceKey primary() && { return std::as_const(*this).primary(); }

  friend bool operator==(const LockSet& a, const LockSet& b) noexcept {
    return a.requests() == b.requests() && a.primary_ == b.primary_ && a.scope_ == b.scope_;
  }

 private:
  friend struct LockSetForTests;

  /// Returns its index in requests_; 0 if it went to the tail.
  std::uint32_t add(ResourceKey key, LockMode mode);
  // Acquire: what sort_tail() did on another thread is visible.
  [[nodiscard]] bool has_tail() const noexcept {
    return tail_.load(std::memory_order_acquire) != 0;
  }
  void sort_tail() const noexcept;
  // For whoever takes the requests. Nobody else uses the set then, so it needs no exchange().
  std::uint16_t take_tail() noexcept {
    const std::uint16_t tail = tail_.load(std::memory_order_relaxed);
    tail_.store(0, std::memory_order_relaxed);
    return tail;
  }

  // The last `tail_` requests wait to be sorted in, and may have keys twice. A key whose place is
  // near the end goes there at once, so few sets have a tail. A tail is sorted in when it is as
  // long as the rest. The first const method that reads the set sorts it in, too, under a mutex
  // (resource.cc).
  // How many requests may be moved to make room for a key: moving 64 of them, 3 KB, takes about as
  // long as appending one.
  static constexpr std::ptrdiff_t kMovesMax = 64;
  static constexpr std::uint16_t kTailMax = UINT16_MAX;
  mutable LockRequests requests_;
  mutable std::uint32_t primary_ = 0;  // the index in requests_ of what was asked for first
  mutable std::atomic<std::uint16_t> tail_{0};
  LockScope scope_ = LockScope::kOperation;
};
static_assert(sizeof(LockSet) == 32, "each entry that asks for locks has room for one");

/// The name of a table's key: "namespace:table".
[[nodiscard]] std::string table_key_name(std::string_view name_space, std::string_view table);

}  // namespace pv2
