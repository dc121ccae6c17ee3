// SPDX-License-Identifier: Apache-2.0
//
// ResourceAdapter: what ExclusiveResource and ConcurrentResource need to know of a resource that is
// kept elsewhere and guarded by a lock service: how to get its lock, and how to read it.
//
// A lock alone protects nothing: its holder may sleep, lose it, wake up and write. So each grant of
// the lock has a token, which grows, and each write carries the token of the grant under which it
// began. A resource that compares tokens refuses the late write. One that does not is unfenced, and
// says so.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/log.h>
#include <pv2/base/status.h>

#include <chrono>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>

namespace pv2 {

/// One grant of a lock. A later grant, to whomever, has a greater epoch.
struct FencingToken {
  std::uint64_t epoch = 0;
  friend constexpr auto operator<=>(FencingToken, FencingToken) noexcept = default;
};

/// Who refuses a write that comes after its lock was granted to somebody else.
struct Fencing {
  enum class By : std::uint8_t {
    kResource,  ///< The resource: it compares the token of each write, in the write's own atomic
                ///< unit.
    kDelay,     ///< Nobody. The lock service grants a lock that was lost only after `lock_delay`.
  };
  By by = By::kResource;
  /// With kDelay: at least as long as a request can be under way. 0: there is no delay, and a late
  /// write is done.
  Duration lock_delay{};
};

/// Implemented by the host. Called by one thread at a time.
template <class T>
class ResourceAdapter {
 public:
  virtual ~ResourceAdapter() = default;
  /// For messages: "catalogue of cluster 7".
  [[nodiscard]] virtual std::string name() const = 0;
  /// Asked once, when the resource is made.
  [[nodiscard]] virtual Fencing fencing() const = 0;
  /// Gets the lock, or gets it again. Each call returns a greater epoch, even if this holder never
  /// lost the lock: so the resource refuses late writes of the earlier grant. Limits its own time.
  virtual Result<FencingToken> acquire() = 0;
  /// Reads what is there now, under the grant `token`.
  virtual Result<T> read(FencingToken token) = 0;
};

/// What a resource said at one moment. It never changes.
template <class T>
struct ResourceView {
  T info;
  std::uint64_t version = 0;  ///< How often this object has acquired the lock.
  FencingToken token;         ///< For each write that is based on `info`.
};

enum class ResourceState : std::uint8_t {
  kReady,
  kRecovering,  ///< One thread is acquiring the lock; the others get kUnavailable.
  kBroken,      ///< The last attempt to acquire it failed. A call after the back-off tries again.
};

struct ResourceOptions {
  std::shared_ptr<Clock> clock{};  ///< The system's clock unless given.
  /// The time between a failed recovery and the next one. It doubles with each failure, up to
  /// `backoff_max`.
  Duration backoff = std::chrono::milliseconds(100);
  Duration backoff_max = std::chrono::seconds(10);
  /// Whether an unfenced resource without a lock delay is used all the same.
  bool allow_late_writes = false;
  LogSink log{};  ///< Told of an unfenced resource, once, when the resource is made.
};

}  // namespace pv2
